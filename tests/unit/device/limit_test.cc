#include "tidemark/device/limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace tidemark::device {
namespace {

// A folder that stands for the root of a file system.
class Root {
 public:
  Root() {
    std::string name = testing::TempDir() + "tidemark_root_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::filesystem::filesystem_error(name, {});
    path_ = name;
  }
  ~Root() { std::filesystem::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  Root& with(const std::string& file, const std::string& text) {
    const std::filesystem::path path = path_.string() + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return *this;
  }
  double cores() const { return cgroup_cores(path_.c_str()); }
  int64_t memory() const { return cgroup_memory_bytes(path_.c_str()); }

 private:
  std::filesystem::path path_;
};

const double kNoQuota = std::numeric_limits<double>::infinity();

TEST(Cgroups, LimitNothingWhereThereAreNone) {
  const Root root;
  EXPECT_EQ(root.cores(), kNoQuota);
  EXPECT_EQ(root.memory(), kUnlimited);
}

TEST(Cgroups, OfVersion2LimitByTheTightestOnTheWayUp) {
  Root root;
  root.with("/proc/self/cgroup", "0::/user/job\n")
      .with("/sys/fs/cgroup/user/job/cpu.max", "400000 100000\n")
      .with("/sys/fs/cgroup/user/job/memory.max", "8000000000\n")
      .with("/sys/fs/cgroup/user/cpu.max", "150000 100000\n")
      .with("/sys/fs/cgroup/user/memory.max", "max\n");
  EXPECT_EQ(root.cores(), 1.5);
  EXPECT_EQ(root.memory(), 8'000'000'000);
  root.with("/sys/fs/cgroup/cpu.max", "50000 100000\n").with("/sys/fs/cgroup/memory.max", "4096\n");
  EXPECT_EQ(root.cores(), 0.5);
  EXPECT_EQ(root.memory(), 4096);
}

TEST(Cgroups, OfVersion2WithoutALimitSayMax) {
  Root root;
  root.with("/proc/self/cgroup", "0::/\n")
      .with("/sys/fs/cgroup/cpu.max", "max 100000\n")
      .with("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(root.cores(), kNoQuota);
  EXPECT_EQ(root.memory(), kUnlimited);
}

TEST(Cgroups, OfAContainerAreSeenAtTheTop) {
  Root root;
  root.with("/proc/self/cgroup", "0::/docker/0123456789abcdef\n")
      .with("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(root.cores(), 2);
}

TEST(Cgroups, OfVersion1AreFoundByTheWholeNameOfTheController) {
  Root root;
  root.with("/proc/self/cgroup",
            "12:cpuset:/elsewhere\n4:cpu,cpuacct:/job\n3:memory:/job\n1:name=systemd:/\n")
      .with("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "250000\n")
      .with("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n")
      .with("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(root.cores(), 2.5);
  EXPECT_EQ(root.memory(), 1 << 30);
}

TEST(Cgroups, OfVersion1WithoutAQuotaSayMinusOne) {
  Root root;
  root.with("/proc/self/cgroup", "4:cpuacct,cpu:/\n")
      .with("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
      .with("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.cores(), kNoQuota);
}

TEST(Cgroups, WithWordsInsteadOfNumbersLimitNothing) {
  Root root;
  root.with("/proc/self/cgroup", "no colons\n0::\n")
      .with("/sys/fs/cgroup/cpu.max", "100000\n")
      .with("/sys/fs/cgroup/memory.max", "much\n");
  EXPECT_EQ(root.cores(), kNoQuota);
  EXPECT_EQ(root.memory(), kUnlimited);
}

TEST(Cores, AreAtLeastOneAndAtMostTheMachines) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), sysconf(_SC_NPROCESSORS_ONLN));
}

TEST(Limit, LeavesTheUsersStrtokAlone) {
  char text[] = "1,2,3";
  EXPECT_STREQ(std::strtok(text, ","), "1");
  EXPECT_GT(default_limit_bytes(), 0);
  EXPECT_GT(usable_cores(), 0);
  EXPECT_STREQ(std::strtok(nullptr, ","), "2");
  EXPECT_STREQ(std::strtok(nullptr, ","), "3");
}

}  // namespace
}  // namespace tidemark::device
