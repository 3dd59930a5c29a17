// Functions: traced once for each kind of arguments, planned, compiled, and run in one arena.
//
//   auto step = td::function([](const td::Tensor& x, td::Dim n) { return ...; }, {.name = "step"});
//
// The types of the lambda's parameters: `const Tensor&` is a value known only at the call (a plain
// number may be passed); `Dim` is a size known only at the call; `Static<T>`, `Shape` and `DType`
// are known while tracing and part of the key; structs of these are Structures (structure.h).
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tidemark/function/arguments.h"

namespace tidemark {
namespace detail {

// Compile-time messages for types that cannot be a parameter or a result; true if the types are
// valid.
template <class A>
constexpr bool check_parameter() {
  using T = std::remove_cvref_t<A>;
  constexpr bool is_place =
      std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>>;
  constexpr bool is_number = std::is_arithmetic_v<T>;
  constexpr Fault wrong = is_number ? Fault::none : fault<T>();
  static_assert(!is_number,
                "a traced function cannot take a plain C++ number: its value would be frozen into "
                "the program. Declare the parameter `const Tensor&` (a run-time value; callers may "
                "still pass 0.1f), `Dim` (a run-time size), or `Static<int>` (part of the key: one "
                "trace for each value)");
  static_assert(!is_place,
                "a traced function cannot take an argument by non-const reference: return the new "
                "value, or use a Variable");
  static_assert(
      wrong != Fault::number,
      "a traced function cannot take a structure that holds a plain C++ number: its value "
      "would be frozen into the program. Declare the field `Tensor` (a run-time value; "
      "callers may still pass 0.1f), `Dim` (a run-time size), or `Static<int>` (part of "
      "the key: one trace for each value)");
  static_assert(wrong != Fault::many_fields,
                "a struct of more than 16 fields: name them with TIDEMARK_FIELDS(...)");
  static_assert(wrong != Fault::other,
                "a traced function takes tensors, Dim, Shape, DType, Static values, and structures "
                "of them; a struct must be an aggregate or name its fields with TIDEMARK_FIELDS");
  return !is_number && !is_place && wrong == Fault::none;
}

template <class R>
constexpr bool check_result() {
  if constexpr (std::is_void_v<R>) {
    return true;
  } else {
    constexpr Fault wrong = fault<std::remove_cvref_t<R>>();
    static_assert(wrong != Fault::number,
                  "a traced function returns tensors and structures of them; a plain number cannot "
                  "be known while tracing");
    static_assert(wrong != Fault::many_fields,
                  "a struct of more than 16 fields: name them with TIDEMARK_FIELDS(...)");
    static_assert(wrong != Fault::other,
                  "a traced function returns tensors and structures of them; a struct must be an "
                  "aggregate or name its fields with TIDEMARK_FIELDS");
    return wrong == Fault::none;
  }
}

template <class F>
struct SignatureOf : SignatureOf<decltype(&F::operator())> {};
template <class R, class... A>
struct SignatureOf<R (*)(A...)> {
  using type = R(A...);
};
template <class R, class... A>
struct SignatureOf<R (*)(A...) noexcept> : SignatureOf<R (*)(A...)> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...)> : SignatureOf<R (*)(A...)> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...) const> : SignatureOf<R (*)(A...)> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...) noexcept> : SignatureOf<R (*)(A...)> {};
template <class C, class R, class... A>
struct SignatureOf<R (C::*)(A...) const noexcept> : SignatureOf<R (*)(A...)> {};
// Layers also take the caller's line.
template <class Signature>
struct WithoutSource {
  using type = Signature;
};
template <class R, class A>
struct WithoutSource<R(A, Source)> {
  using type = R(A);
};
template <class F>
concept HasSignature = std::is_function_v<std::remove_pointer_t<F>> || requires { &F::operator(); };

}  // namespace detail

template <class Signature>
class Function;

// A handle: copies share the cache of traces and programs, and the last one frees it. May be called
// from any thread.
//
// Arguments are passed by value, however the lambda declares them. A tensor that was moved in and
// is not shared is donated: its memory may be reused for results. `step(x)` keeps x;
// `step(std::move(x))` and `step(a + b)` donate.
template <class R, class... A>
class Function<R(A...)> {
  static constexpr bool kSound = (detail::check_result<R>() && ... && detail::check_parameter<A>());
  using All = std::tuple<std::remove_cvref_t<A>...>;

 public:
  using Result = std::remove_cvref_t<R>;

  template <class F>
  Function(F f, FunctionOptions options, Source at) {
    if constexpr (kSound) {
      static_assert(std::is_invocable_r_v<R, F&, A&&...>,
                    "this function cannot be called with the parameters of the signature given, or "
                    "gives another result");
      core_ = std::make_shared<detail::FunctionCore>(
          std::move(options), detail::make_body<R, A...>(std::move(f), at), at);
    }
  }

  Result operator()(std::remove_cvref_t<A>... arguments, Source at = Source::here()) const {
    All all(std::move(arguments)...);
    detail::ResultRoom<Result> room;
    return room.fill(core_->call(detail::take_arguments(all), room, at));
  }
  // The memory plan of a call with such arguments. Nothing runs and nothing is allocated. Tensors
  // may be replaced by specs, td::spec({64, 784}), whose sizes may be open.
  Plan plan(std::remove_cvref_t<A>... arguments, PlanOptions options = {},
            Source at = Source::here()) const {
    All all(std::move(arguments)...);
    return core_->plan(detail::take_arguments(all), options, at);
  }
  // Programs of such a call, from the usual one down to the one that needs the fewest bytes, with
  // the work that each does again.
  std::vector<TradeoffPoint> tradeoff(std::remove_cvref_t<A>... arguments,
                                      Source at = Source::here()) const {
    return plan(std::move(arguments)..., {}, at).tradeoff();
  }
  // The largest value of the first open size, with all sizes that equal it in these arguments, for
  // which a call fits the budget. Nothing runs and nothing is allocated.
  int64_t largest(std::remove_cvref_t<A>... arguments, Budget budget,
                  Source at = Source::here()) const {
    All all(std::move(arguments)...);
    return core_->largest(detail::take_arguments(all), budget, at);
  }
  // The bytes that a tape around such a call stores for the gradient, besides arguments and
  // Variables. Nothing runs and nothing is allocated.
  Bytes saved_for_gradient(std::remove_cvref_t<A>... arguments, Source at = Source::here()) const {
    All all(std::move(arguments)...);
    return core_->saved_for_gradient(detail::take_arguments(all), at);
  }
  // A measured run: std::pair{result, Profile}, or only the Profile if there is no result.
  auto profile(std::remove_cvref_t<A>... arguments, Source at = Source::here()) const {
    All all(std::move(arguments)...);
    detail::ResultRoom<Result> room;
    auto [called, profile] = core_->profile(detail::take_arguments(all), room, at);
    if constexpr (std::is_void_v<R>)
      return std::move(profile);
    else
      return std::pair<Result, Profile>(room.fill(std::move(called)), std::move(profile));
  }
  // Runs in the caller's memory, plan.arena() bytes, which also holds the results.
  Result run_in(const Plan& plan, std::span<std::byte> arena, std::remove_cvref_t<A>... arguments,
                Source at = Source::here()) const {
    All all(std::move(arguments)...);
    detail::ResultRoom<Result> room;
    return room.fill(core_->run_in(plan, arena, detail::take_arguments(all), room, at));
  }

  CacheInfo cache_info() const { return core_->cache_info(); }
  void clear_cache() const { core_->clear_cache(); }
  // What tracing has frozen: each plain number with its line, and captured tensors.
  std::string report() const { return core_->report(); }
  // Traces again and names the plain numbers that have changed; empty if none has.
  std::string check_captures(Source at = Source::here()) const { return core_->check_captures(at); }
  // The program after a pass, or as it runs.
  std::string text(std::string_view pass = {}) const { return core_->text(pass); }
  const std::string& name() const { return core_->name(); }

 private:
  std::shared_ptr<const detail::FunctionCore> core_;
};

// The signature is read from f.
template <class F>
  requires(!std::is_function_v<F>)
auto function(F f, FunctionOptions options = {}, Source at = Source::here()) {
  if constexpr (detail::HasSignature<F>) {
    using Signature = typename detail::WithoutSource<typename detail::SignatureOf<F>::type>::type;
    return Function<Signature>(std::move(f), std::move(options), at);
  } else {
    static_assert(detail::always_false<F>,
                  "td::function must see the parameter types: write `const td::Tensor& x` instead "
                  "of `auto x`, or give the signature, td::function<td::Tensor(td::Tensor)>(f)");
  }
}
// For callables with several signatures: td::function<td::Tensor(td::Tensor)>(td::exp).
template <class Signature, class F>
  requires std::is_function_v<Signature>
Function<Signature> function(F f, FunctionOptions options = {}, Source at = Source::here()) {
  return Function<Signature>(std::move(f), std::move(options), at);
}

}  // namespace tidemark
