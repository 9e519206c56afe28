// Runs CUDA kernels on the CPU: the groups of a launch one after the other, the work items of a
// group as fibers of one thread, so that a barrier is a switch of stacks and shared memory is static.

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

// Workaround quotient-of-negation: g++ eliminates no redundant expressions. Others have no such pragma.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-fre")
#endif

#define __device__
#define __global__
#define __shared__ static
#define __align__(size) __attribute__((aligned(size)))
#define __noinline__ __attribute__((noinline))
#define __syncthreads() uop_host::wait(__LINE__)
#define __syncwarp() uop_host::wait(-__LINE__)
// The only assembly that our sources have here: `asm volatile(...)` with a matrix instruction on a,
// b and c.
#define asm
#define volatile(...) uop_host::multiply(#__VA_ARGS__, a, b, c)
// In place of other assembly they call what is here.
#define ON_HOST

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
const unsigned WARP = 32;

struct Copy {
  void* to;
  const void* from;
  size_t size;
};

struct Fiber {
  ucontext_t context;  // where it starts
  jmp_buf place_in_code;  // where it waits: such a switch asks nothing of the kernel
  std::vector<char> stack;
  uop_dim place;
  std::vector<Copy> copies;  // those that it has begun
  unsigned matrices;  // how many instructions on matrices it has begun
  // Of the barrier where it waits; below 0 where it waits for its warp alone, 0 when it has ended.
  int line;
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

// A device may copy as late as this, so it does; a group of one item copies at once.
static inline void copy_later(void* to, const void* from, size_t size) {
  if (running) running->copies.push_back({to, from, size});
  else memcpy(to, from, size);
}

static inline void copy_now() {
  if (!running) return;
  for (const Copy& copy : running->copies) memcpy(copy.to, copy.from, copy.size);
  running->copies.clear();
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
  fiber.matrices = 0;
  fiber.copies.clear();
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

const int PARTED = INT_MIN, MULTIPLYING = INT_MIN + 1;

// Where some wait: all in one place, or PARTED.
static int meeting(const Fiber* first, size_t count) {
  for (size_t k = 1; k < count; k++)
    if (first[k].line != first->line) return PARTED;
  return first->line;
}

// 0, or -1 where not all reach the same barrier. A warp runs on alone up to a barrier of the group.
static int group_of_fibers(std::vector<Fiber>& fibers) {
  uop_dim place;
  size_t number = 0;
  each(blockDim, place, [&] { fibers[number++].place = place; });
  for (Fiber& fiber : fibers) start(fiber);
  for (;;) {
    for (size_t first = 0; first < fibers.size(); first += WARP) {
      size_t count = std::min<size_t>(WARP, fibers.size() - first);
      for (int line; (line = meeting(&fibers[first], count)) < 0 && line != PARTED;)
        for (size_t k = 0; k < count; k++) resume(fibers[first + k]);
    }
    int line = meeting(fibers.data(), fibers.size());
    if (line <= 0) return line ? -1 : 0;
    for (Fiber& fiber : fibers) resume(fiber);
  }
}

// A float of any layout; exponents are of base 2. In e4m3 the highest exponent is a number too.
static double decoded(unsigned bits, int exponent_bits, int digits, bool has_infinities) {
  int bias = (1 << (exponent_bits - 1)) - 1, most = (1 << exponent_bits) - 1;
  int exponent = bits >> digits & most, fraction = bits & ((1 << digits) - 1);
  bool is_last = exponent == most && (has_infinities || fraction == (1 << digits) - 1);
  double x = exponent ? ldexp((1 << digits) + fraction, exponent - bias - digits)
                      : ldexp(fraction, 1 - bias - digits);
  if (is_last) x = has_infinities && !fraction ? INFINITY : NAN;
  return bits >> (exponent_bits + digits) ? -x : x;
}

static double number(const char* text, unsigned bits) {
  if (strstr(text, ".bf16.")) return decoded(bits, 8, 7, true);
  if (strstr(text, ".e4m3.")) return decoded(bits, 4, 3, false);
  if (strstr(text, ".e5m2.")) return decoded(bits, 5, 2, true);
  return decoded(bits, 5, 10, true);
}

// What the lanes of each warp hold of A and B. Instructions take turns in two places: a lane that
// writes one has met the others after the last read.
static unsigned held[32][2][2][WARP][16];

template <class A, class B, class C> void multiply(const char* text, const A& a, const B& b, C& c) {
  unsigned item = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned lane = item % WARP, run = 4 / sizeof a.s[0];
  auto& own = held[item / WARP][running->matrices++ % 2];
  int size = atoi(strstr(text, "n8k") + 3);
  for (size_t e = 0; e < sizeof a.s / sizeof a.s[0]; e++) own[0][lane][e] = a.s[e];
  for (size_t e = 0; e < sizeof b.s / sizeof b.s[0]; e++) own[1][lane][e] = b.s[e];
  wait(MULTIPLYING);
  for (unsigned e = 0; e < 4; e++) {
    unsigned row = lane / 4 + e / 2 * 8, column = e % 2 + lane % 4 * 2;
    double sum = c.s[e];
    for (unsigned k = 0; k < (unsigned)size; k++) {
      unsigned in_a = k % run + row / 8 * run + k / (4 * run) * 2 * run;
      unsigned in_b = k % run + k / (4 * run) * run;
      sum += number(text, own[0][k / run % 4 + row % 8 * 4][in_a]) *
             number(text, own[1][k / run % 4 + column * 4][in_b]);
    }
    c.s[e] = sum;
  }
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
