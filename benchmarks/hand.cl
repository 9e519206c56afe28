// The gemm that a hand writes for a CPU: FLOATS is its native vector of WIDTH float32.
#pragma OPENCL FP_CONTRACT OFF
#define JOINED(a, b) a##b
#define NAMED(a, b) JOINED(a, b)
#define FLOATS NAMED(float, WIDTH)
// PoCL makes faster code of pointers than of vloadn.
typedef FLOATS __attribute__((aligned(4))) anywhere;
#define READ(p) (*(global const anywhere*)(p))
#define WRITE(v, p) (*(global anywhere*)(p) = (v))

#if ROWS == 8
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#else
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3)
#endif
#define START(r) FLOATS left##r = 0.0f, right##r = 0.0f;
#define ADD(r) \
  { \
    const FLOATS x = rows[r * k + i]; \
    left##r = left##r + x * first; \
    right##r = right##r + x * second; \
  }
#define FINISH(r) \
  WRITE(left##r, c + (row + r) * n + column); \
  WRITE(right##r, c + (row + r) * n + column + WIDTH);

// c[m,n] = a[m,k] @ b[k,n]: an item has ROWS rows, 8 or 4, by 2 vectors of c in registers, and one
// loop over k. m is a multiple of ROWS, n of 2 vectors; items: (n / (2 * WIDTH), m / ROWS). Written
// out, because PoCL leaves arrays in memory.
kernel void gemm(global float* c, global const float* a, global const float* b, int n, int k) {
  const int column = get_global_id(0) * 2 * WIDTH;
  const int row = get_global_id(1) * ROWS;
  global const float* rows = a + row * k;
  EACH_ROW(START)
  for (int i = 0; i < k; i++) {
    const FLOATS first = READ(b + i * n + column);
    const FLOATS second = READ(b + i * n + column + WIDTH);
    EACH_ROW(ADD)
  }
  EACH_ROW(FINISH)
}
