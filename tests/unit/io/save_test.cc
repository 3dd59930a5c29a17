// The order of system calls in a save, and what is left where one of them fails.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/error_of.h"
#include "tests/unit/io/files.h"
#include "tidemark/io/system_calls.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace tidemark {
namespace {

using io::SystemCalls;

// What was called, and what is to fail. Plain functions stand in the table, so this is global.
struct Watch {
  SystemCalls real = {};
  std::vector<std::string> calls = {};
  std::string failing = {};  // "sync 2": the second one.
  int error = 0;
  std::map<std::string, int> counts = {};
  std::map<int, bool> is_folder = {};
  size_t most_written = SIZE_MAX;  // At once.
};
Watch* watch = nullptr;

// Whether this call is to fail now.
bool strikes(const std::string& name) {
  const int count = ++watch->counts[name];
  watch->calls.push_back(name);
  const bool now = watch->failing == cat(name, " ", count);
  if (now) errno = watch->error;
  return now;
}

class Watched {
 public:
  Watched() {
    watch_.real = io::system_calls();
    watch = &watch_;
    SystemCalls& calls = io::system_calls();
    calls.open = [](const char* path, int flags, mode_t mode) {
      const bool folder = (flags & O_DIRECTORY) != 0;
      if (strikes(folder ? "open folder" : "open")) return -1;
      const int file = watch->real.open(path, flags, mode);
      watch->is_folder[file] = folder;
      return file;
    };
    calls.lock = [](int file) { return strikes("lock") ? -1 : watch->real.lock(file); };
    calls.truncate = [](int file, off_t bytes) {
      return strikes("truncate") ? -1 : watch->real.truncate(file, bytes);
    };
    calls.read = [](int file, void* to, size_t bytes, off_t offset) -> ssize_t {
      if (strikes("read")) return watch->error == 0 ? 0 : -1;
      return watch->real.read(file, to, std::min(bytes, watch->most_written), offset);
    };
    calls.write = [](int file, const void* from, size_t bytes) -> ssize_t {
      if (strikes("write")) return watch->error == 0 ? 0 : -1;
      return watch->real.write(file, from, std::min(bytes, watch->most_written));
    };
    calls.sync = [](int file) {
      return strikes(watch->is_folder[file] ? "sync folder" : "sync") ? -1 : watch->real.sync(file);
    };
    calls.rename = [](const char* from, const char* to) {
      return strikes("rename") ? -1 : watch->real.rename(from, to);
    };
    calls.unlink = [](const char* path) {
      return strikes("unlink") ? -1 : watch->real.unlink(path);
    };
    calls.close = [](int file) {
      const std::string name = watch->is_folder[file] ? "close folder" : "close";
      const int result = watch->real.close(file);
      return strikes(name) ? -1 : result;
    };
  }
  ~Watched() {
    io::system_calls() = watch_.real;
    watch = nullptr;
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  Watch* operator->() { return &watch_; }

 private:
  Watch watch_;
};

int open_files() {
  int count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
    count += each.exists();
  return count;
}

std::vector<std::string> names_in(const Folder& folder) {
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder.path()))
    names.push_back(each.path().filename());
  return names;
}

TEST(Save, SyncsBeforeItRenamesAndTheFolderAfter) {
  const Folder folder;
  Watched watched;
  td::io::save_npy(folder / "x.npy", td::ones({3}));
  EXPECT_EQ(watched->calls, (std::vector<std::string>{"open", "lock", "truncate", "write", "write",
                                                      "sync", "rename", "open folder",
                                                      "sync folder", "close folder", "close"}));
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"x.npy"});
}

// Each call, and what is said where it fails.
struct Failure {
  const char* call;
  int error;
  const char* text;
};

TEST(Save, KeepsTheFileWhateverFails) {
  const Failure failures[] = {
      {"open 1", EACCES,
       "save_npy: x.npy cannot be saved: x.npy.saving: Permission denied\n"
       "  name a file in a folder that is there and may be written to"},
      {"open 1", ENOSPC, "save_npy: x.npy cannot be saved: x.npy.saving: No space left on device"},
      {"truncate 1", EIO,
       "save_npy: x.npy cannot be saved (the file is unchanged): truncate: Input/output error"},
      {"write 1", ENOSPC,
       "save_npy: x.npy cannot be saved (the file is unchanged): write at byte 0: No space left on "
       "device"},
      {"write 2", EIO,
       "save_npy: x.npy cannot be saved (the file is unchanged): write at byte 128: Input/output "
       "error"},
      {"write 2", 0,
       "save_npy: x.npy cannot be saved (the file is unchanged): write at byte 128: No space left "
       "on device"},
      {"sync 1", EIO,
       "save_npy: x.npy cannot be saved (the file is unchanged): fsync: Input/output error"},
      {"sync 1", ENOSPC,
       "save_npy: x.npy cannot be saved (the file is unchanged): fsync: No space left on device"},
      {"rename 1", EIO,
       "save_npy: x.npy cannot be saved (the file is unchanged): rename: Input/output error"},
  };
  const Folder folder;
  td::io::save_npy(folder / "x.npy", td::ones({3}));
  const std::string before = read_file(folder / "x.npy");
  const int files = open_files();
  for (const Failure& failure : failures) {
    Watched watched;
    watched->failing = failure.call;
    watched->error = failure.error;
    const auto save = [&] { td::io::save_npy(folder / "x.npy", td::zeros({2})); };
    std::string text = without(folder, error_of<Error>(save));
    const size_t line = text.find("\n  at save_test.cc:");
    if (line != std::string::npos) text.erase(line, text.find('\n', line + 1) - line);
    EXPECT_EQ(text, failure.text) << failure.call;
    EXPECT_EQ(read_file(folder / "x.npy"), before) << failure.call;
    EXPECT_EQ(names_in(folder), std::vector<std::string>{"x.npy"}) << failure.call;
    EXPECT_EQ(open_files(), files) << failure.call;
    EXPECT_EQ(watched->counts["sync folder"], 0) << failure.call;
  }
}

TEST(Save, DoesNotTrySyncAgain) {
  const Folder folder;
  Watched watched;
  watched->failing = "sync 1";
  watched->error = EIO;
  EXPECT_THROW(td::io::save_npy(folder / "x.npy", td::ones({3})), td::DeviceError);
  EXPECT_EQ(watched->counts["sync"], 1);
}

TEST(Save, SaysThatTheFolderMayForget) {
  for (const char* call : {"sync folder 1", "open folder 1"}) {
    const Folder folder;
    td::io::save_npy(folder / "x.npy", td::ones({3}));
    Watched watched;
    watched->failing = call;
    watched->error = EIO;
    const auto save = [&] { td::io::save_npy(folder / "x.npy", td::zeros({2})); };
    EXPECT_EQ(without(folder, error_of<td::DeviceError>(save)),
              "save_npy: x.npy is saved, but a power failure may bring back the old file: fsync "
              "of its folder: Input/output error");
    EXPECT_TRUE(td::identical(td::io::load_npy(folder / "x.npy"), td::zeros({2})));
  }
}

TEST(Save, GoesOnAfterSignalsAndShortWrites) {
  const Folder folder;
  const td::Tensor x = td::arange(1000);
  for (const char* call : {"open 1", "lock 1", "truncate 1", "write 1", "write 2", "sync 1",
                           "rename 1", "open folder 1", "sync folder 1"}) {
    Watched watched;
    watched->failing = call;
    watched->error = EINTR;
    watched->most_written = 777;
    td::io::save_npy(folder / "x.npy", x);
    EXPECT_TRUE(td::identical(td::io::load_npy(folder / "x.npy"), x)) << call;
    EXPECT_EQ(watched->counts["write"], 1 + 6 + (std::strstr(call, "write") != nullptr)) << call;
  }
}

TEST(Load, GoesOnAfterSignalsAndShortReads) {
  const Folder folder;
  const td::Tensor x = td::arange(1000);
  td::io::save_npy(folder / "x.npy", x);
  for (const char* call : {"open 1", "read 1", "read 3"}) {
    Watched watched;
    watched->failing = call;
    watched->error = EINTR;
    watched->most_written = 100;
    EXPECT_TRUE(td::identical(td::io::load_npy(folder / "x.npy", {.copy = true}), x)) << call;
  }
}

TEST(Load, SaysThatTheDiskFailsOrTheFileShrank) {
  const Folder folder;
  td::io::save_npy(folder / "x.npy", td::arange(1000));
  const int files = open_files();
  Watched watched;
  const auto load = [&] { td::io::load_npy(folder / "x.npy", {.copy = true}); };
  watched->failing = "read 3";
  watched->error = EIO;
  EXPECT_EQ(without(folder, error_of<td::DeviceError>(load)),
            "load_npy: x.npy cannot be read at byte 128: Input/output error");
  watched->counts.clear();
  watched->failing = "read 3";
  watched->error = 0;
  const std::string text = without(folder, error_of(load));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "load_npy: x.npy, byte 128: the file ends here, it had 4128 bytes when it was opened");
  EXPECT_EQ(open_files(), files);
}

TEST(Load, SeesThatAMappedFileChangedItsSize) {
  const Folder folder;
  td::io::save_npy(folder / "x.npy", td::arange(1000));
  Watched watched;
  static std::string path;
  path = folder / "x.npy";
  io::system_calls().read = [](int file, void* to, size_t bytes, off_t offset) {
    std::filesystem::resize_file(path, 4000);
    return watch->real.read(file, to, bytes, offset);
  };
  const std::string text = without(folder, error_of([&] { td::io::load_npy(path); }));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "load_npy: x.npy had 4128 bytes when it was opened and has 4000");
  EXPECT_EQ(text.substr(text.rfind('\n')),
            "\n  another process writes to it: wait for it, or have it save under a new name and "
            "rename");
}

TEST(Save, WritesOverWhatAKilledProcessLeft) {
  const Folder folder;
  write_file(folder / "x.npy.saving", std::string(100000, 'x'));
  td::io::save_npy(folder / "x.npy", td::ones({3}));
  EXPECT_TRUE(td::identical(td::io::load_npy(folder / "x.npy"), td::ones({3})));
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"x.npy"});
}

TEST(Save, KeepsLinksAndRights) {
  const Folder folder;
  td::io::save_npy(folder / "x.npy", td::ones({3}));
  ::chmod((folder / "x.npy").c_str(), 0600);
  std::filesystem::create_symlink("x.npy", folder / "link.npy");
  td::io::save_npy(folder / "link.npy", td::zeros({3}));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.npy"));
  EXPECT_TRUE(td::identical(td::io::load_npy(folder / "x.npy"), td::zeros({3})));
  struct stat status = {};
  ASSERT_EQ(::stat((folder / "x.npy").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

// The message without folder and line.
template <class E = UserError, class F>
std::string said(const Folder& folder, const F& f) {
  std::string text = without(folder, error_of<E>(f));
  const size_t line = text.find("\n  at save_test.cc:");
  if (line != std::string::npos) text.erase(line, text.find('\n', line + 1) - line);
  return text;
}

TEST(Save, CreatesWhatADanglingLinkNames) {
  const Folder folder;
  std::filesystem::create_directory(folder / "inner");
  std::filesystem::create_symlink("inner/second.npy", folder / "first.npy");
  std::filesystem::create_symlink("x.npy", folder / "inner/second.npy");
  td::io::save_npy(folder / "first.npy", td::ones({3}));
  EXPECT_EQ(std::filesystem::read_symlink(folder / "first.npy"), "inner/second.npy");
  EXPECT_EQ(std::filesystem::read_symlink(folder / "inner/second.npy"), "x.npy");
  EXPECT_TRUE(
      std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / "inner/x.npy")));
  td::io::save_npy(folder / "first.npy", td::zeros({3}));
  EXPECT_TRUE(td::identical(td::io::load_npy(folder / "inner/x.npy"), td::zeros({3})));
}

TEST(Save, RefusesLinksThatLeadNowhere) {
  const Folder folder;
  std::filesystem::create_symlink("b.npy", folder / "a.npy");
  std::filesystem::create_symlink("a.npy", folder / "b.npy");
  EXPECT_EQ(said(folder, [&] { td::io::save_npy(folder / "a.npy", td::ones({1})); }),
            "save_npy: a.npy cannot be saved: Too many levels of symbolic links\n"
            "  name a file, or mend the symbolic links");
  std::filesystem::create_symlink("missing/x.npy", folder / "c.npy");
  EXPECT_EQ(said(folder, [&] { td::io::save_npy(folder / "c.npy", td::ones({1})); }),
            "save_npy: c.npy cannot be saved: missing/x.npy.saving: No such file or directory\n"
            "  name a file in a folder that is there and may be written to");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "c.npy"));
}

// What stands under the name of the temporary and was not left by a save belongs to somebody.
TEST(Save, RefusesToWriteOverWhatIsNoTemporaryOfItsOwn) {
  const std::string expected =
      "save_npy: x.npy cannot be saved: x.npy.saving is in the way, and is a link or not a regular "
      "file\n"
      "  remove it, or save under another name";
  using Make = std::function<void(const Folder&)>;
  const Make makes[] = {
      [](const Folder& folder) { ::mkfifo((folder / "x.npy.saving").c_str(), 0666); },
      [](const Folder& folder) {
        std::filesystem::create_symlink("precious", folder / "x.npy.saving");
      },
      [](const Folder& folder) {
        std::filesystem::create_symlink("not there", folder / "x.npy.saving");
      },
      [](const Folder& folder) {
        std::filesystem::create_hard_link(folder / "precious", folder / "x.npy.saving");
      },
      [](const Folder& folder) { std::filesystem::create_directory(folder / "x.npy.saving"); },
  };
  for (const Make& make : makes) {
    const Folder folder;
    write_file(folder / "precious", "bytes of somebody's");
    td::io::save_npy(folder / "x.npy", td::ones({3}));
    const std::string before = read_file(folder / "x.npy");
    make(folder);
    EXPECT_EQ(said(folder, [&] { td::io::save_npy(folder / "x.npy", td::zeros({2})); }), expected);
    EXPECT_EQ(read_file(folder / "precious"), "bytes of somebody's");
    EXPECT_EQ(read_file(folder / "x.npy"), before);
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(folder / "x.npy.saving")));
    EXPECT_FALSE(std::filesystem::exists(folder / "not there"));
  }
}

// A pipe that appears between the look and the opening, with and without a reader.
TEST(Save, DoesNotWaitForAPipeThatComesInBetween) {
  for (const bool has_reader : {false, true}) {
    const Folder folder;
    static std::string temporary;
    temporary = folder / "x.npy.saving";
    Watched watched;
    io::system_calls().open = [](const char* path, int flags, mode_t mode) {
      if (path == temporary && (flags & O_CREAT) != 0) ::mkfifo(path, 0666);
      return watch->real.open(path, flags, mode);
    };
    int reader = -1;
    if (has_reader) {
      ::mkfifo(temporary.c_str(), 0666);
      reader = ::open(temporary.c_str(), O_RDONLY | O_NONBLOCK);
    }
    const auto save = [&] { td::io::save_npy(folder / "x.npy", td::ones({1})); };
    const std::string text = said<Error>(folder, save);
    EXPECT_TRUE(text.find("x.npy.saving is in the way") != std::string::npos ||
                text.find("x.npy.saving: No such device or address") != std::string::npos)
        << text;
    EXPECT_FALSE(std::filesystem::exists(folder / "x.npy"));
    if (reader >= 0) ::close(reader);
  }
}

// As a full disk: the system takes a part of the bytes and no more. Every kind of file that is
// written is as it was.
TEST(Save, KeepsEveryKindOfFileWhenThereIsNoRoomForMore) {
  const Folder folder;
  const td::Variable v(td::ones({3000}));
  const auto f = td::function([](const td::Tensor& x) { return td::exp(x) * 2; });
  const td::Tensor x = td::ones({3000});
  const std::map<std::string, td::Tensor> tensors = {{"a", x}, {"b", x}};
  const std::map<std::string, std::function<void(const std::string&)>> saves = {
      {"npy", [&](const std::string& path) { td::io::save_npy(path, x); }},
      {"npz", [&](const std::string& path) { td::io::save_npz(path, tensors); }},
      {"safetensors", [&](const std::string& path) { td::io::save_safetensors(path, tensors); }},
      {"checkpoint", [&](const std::string& path) { td::io::Checkpoint{{"v", v}}.save(path); }},
      {"html", [&](const std::string& path) { td::report::write_html(path, f.plan(x)); }},
      {"cache",
       [&](const std::string& path) {
         std::filesystem::remove(path);
         for (const td::Tensor& row : td::data::from_tensor_slices(x).cache(path)) (void)row;
       }},
  };
  ::signal(SIGXFSZ, SIG_IGN);
  for (const auto& [name, save] : saves) {
    save(folder / name);
    const std::string before = read_file(folder / name);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{.rlim_cur = 5000, .rlim_max = limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const std::string text =
        without(folder, error_of<td::DeviceError>([&] { save(folder / name); }));
    ::setrlimit(RLIMIT_FSIZE, &limit);
    EXPECT_TRUE(
        text.ends_with("cannot be saved (the file is unchanged): write at byte 5000: File "
                       "too large"))
        << text;
    EXPECT_FALSE(std::filesystem::exists(folder / (name + ".saving")));
    if (name != "cache")
      EXPECT_EQ(read_file(folder / name), before) << name;
    else
      EXPECT_FALSE(std::filesystem::exists(folder / name));
    save(folder / name);
    EXPECT_EQ(read_file(folder / name), before) << name;
  }
  ::signal(SIGXFSZ, SIG_DFL);
}

TEST(Save, RefusesWhatIsNoFile) {
  const Folder folder;
  std::filesystem::create_directory(folder / "x.npy");
  const std::string text =
      without(folder, error_of([&] { td::io::save_npy(folder / "x.npy", td::ones({1})); }));
  EXPECT_EQ(text.substr(0, text.find('\n')), "save_npy: x.npy exists and is not a regular file");
  const std::string empty = error_of([] { td::io::save_npy("", td::ones({1})); });
  EXPECT_EQ(empty.substr(0, empty.find('\n')), "save_npy: the path is empty");
  EXPECT_EQ(empty.substr(empty.rfind('\n')), "\n  name the file");
}

// Two that save the same file at once take turns: what is there is always whole.
TEST(Save, IsWholeWhenThreadsSaveTheSameFile) {
  const Folder folder;
  const auto save = [&](float number) {
    for (int i = 0; i < 10; ++i) td::io::save_npy(folder / "x.npy", td::full({20000}, number));
  };
  save(0);
  std::thread one(save, 1.0F), two(save, 2.0F);
  for (int i = 0; i < 20; ++i) {
    const td::Tensor x = td::io::load_npy(folder / "x.npy");
    EXPECT_TRUE(td::identical(x, td::full({20000}, x[0].item<float>())));
  }
  one.join();
  two.join();
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"x.npy"});
}

}  // namespace
}  // namespace tidemark
