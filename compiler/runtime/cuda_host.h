// Runs CUDA kernels on the CPU: the groups of a launch one after the other, the work items of a
// group as fibers of one thread, so that a barrier is a switch of stacks and shared memory is static.

#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <ucontext.h>

#include <cstddef>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __align__(size) __attribute__((aligned(size)))
#define __noinline__ __attribute__((noinline))
#define __syncthreads() uop_host::wait(__LINE__)

struct uop_dim {
  unsigned x, y, z;
};
static uop_dim gridDim, blockIdx, blockDim, threadIdx;

namespace uop_host {

template <class To, class From> To bits(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  memcpy(&y, &x, sizeof y);
  return y;
}

const size_t STACK = 1 << 17;

struct Fiber {
  ucontext_t context;  // where it starts
  jmp_buf place_in_code;  // where it waits: such a switch asks nothing of the kernel
  std::vector<char> stack;
  uop_dim place;
  int line;  // of the barrier where it waits; 0 when it has ended
};

static jmp_buf scheduler;
static Fiber* running;
static void (*body)(void*);
static void* arguments;

// A group of one item never waits; in it nothing is running.
static inline void wait(int line) {
  if (!running) return;
  Fiber* self = running;
  self->line = line;
  if (!_setjmp(self->place_in_code)) _longjmp(scheduler, 1);
  threadIdx = self->place;
}

static void enter() {
  threadIdx = running->place;
  body(arguments);
  running->line = 0;
  _longjmp(scheduler, 1);
}

static void resume(Fiber& fiber) {
  running = &fiber;
  if (!_setjmp(scheduler)) _longjmp(fiber.place_in_code, 1);
  running = nullptr;
}

static void start(Fiber& fiber) {
  fiber.stack.resize(STACK);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.data();
  fiber.context.uc_stack.ss_size = STACK;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, enter, 0);
  running = &fiber;
  if (!_setjmp(scheduler)) setcontext(&fiber.context);
  running = nullptr;
}

template <class Each> void each(uop_dim size, uop_dim& place, Each run) {
  for (place.z = 0; place.z < size.z; place.z++)
    for (place.y = 0; place.y < size.y; place.y++)
      for (place.x = 0; place.x < size.x; place.x++) run();
}

// The line of the barrier at which all wait; 0 where all have ended, -1 where they part.
static int meeting(const std::vector<Fiber>& fibers) {
  for (const Fiber& fiber : fibers)
    if (fiber.line != fibers[0].line) return -1;
  return fibers[0].line;
}

static int group_of_fibers(std::vector<Fiber>& fibers) {
  uop_dim place;
  size_t number = 0;
  each(blockDim, place, [&] { fibers[number++].place = place; });
  for (Fiber& fiber : fibers) start(fiber);
  int line;
  while ((line = meeting(fibers)) > 0)
    for (Fiber& fiber : fibers) resume(fiber);
  return line;
}

template <class... A, size_t... I>
void call(void (*kernel)(A...), void** pointers, std::index_sequence<I...>) {
  kernel(*(A*)pointers[I]...);
}

template <class... A> struct Call {
  void (*kernel)(A...);
  void** pointers;
  static void run(void* self) {
    call(((Call*)self)->kernel, ((Call*)self)->pointers, std::index_sequence_for<A...>());
  }
};

// 0, or -1 where not all items of a group reach the same barrier.
template <class... A>
int launch(void (*kernel)(A...), void** pointers, const unsigned* size, bool has_barriers) {
  Call<A...> bound{kernel, pointers};
  body = bound.run, arguments = &bound;
  gridDim = {size[0], size[1], size[2]}, blockDim = {size[3], size[4], size[5]};
  bool alone = blockDim.x * blockDim.y * blockDim.z == 1;
  int result = 0;
  std::vector<Fiber> fibers(has_barriers && !alone ? blockDim.x * blockDim.y * blockDim.z : 0);
  each(gridDim, blockIdx, [&] {
    if (!has_barriers || alone)
      each(blockDim, threadIdx, [&] { body(arguments); });
    else if (result == 0)
      result = group_of_fibers(fibers);
  });
  return result;
}

}  // namespace uop_host

static inline unsigned __float_as_uint(float x) { return uop_host::bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return uop_host::bits<float>(x); }
static inline long long __double_as_longlong(double x) { return uop_host::bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return uop_host::bits<double>(x); }
// Work items run one after the other, so nothing divides it.
template <class T> static inline void atomicAdd(T* place, T x) { *place += x; }
static inline unsigned __umulhi(unsigned x, unsigned y) {
  return (unsigned)((unsigned long long)x * y >> 32);
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
template <class T> static inline T max(T x, T y) { return x < y ? y : x; }
template <class T> static inline T min(T x, T y) { return y < x ? y : x; }
