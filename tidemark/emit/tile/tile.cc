#include "tidemark/emit/tile/tile.h"

#include "tidemark/emit/tile/code.h"
#include "tidemark/emit/tile/interpret.h"

namespace tidemark {
namespace {

struct TileKernel final : Kernel {
  TileKernel(const Nest& nest, device::Isa isa) : code(tile::compile(nest, isa)) {
    run = [](const Kernel& self, const KernelArgs& args) {
      tile::interpret(static_cast<const TileKernel&>(self).code, args);
    };
  }

  tile::Code code;
};

}  // namespace

std::unique_ptr<Kernel> make_tile_kernel(const Nest& nest, device::Isa isa) {
  return std::make_unique<TileKernel>(nest, isa);
}

std::unique_ptr<Kernel> make_tile_kernel(const Nest& nest) {
  return make_tile_kernel(nest, device::isa());
}

}  // namespace tidemark
