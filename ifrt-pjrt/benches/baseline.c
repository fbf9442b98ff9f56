/* The floor: what a program pays that calls the plugin directly.
 *
 * usage: baseline PLUGIN MODULE OPTIONS
 *
 * Reads lines "OPERATION COUNT BYTES" and answers each with one line, "CPU WALL": nanoseconds per
 * operation, of all threads of the process and by the clock. The structs are declared here as far
 * as they are used; ifrt-pjrt/src/sys has them all.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { size_t size; void *ext; void *error; const char *message; size_t message_size; } ErrorMessage;
typedef struct { size_t size; void *ext; const char *name; size_t name_size; int type; int64_t value; size_t value_size; } NamedValue;
typedef struct { size_t size; void *ext; const NamedValue *options; size_t num_options; void *unused[4]; void *client; void *unused_too[2]; } ClientCreate;
typedef struct { size_t size; void *ext; void *client; void **devices; size_t num_devices; } ClientDevices;
typedef struct { size_t size; void *ext; char *code; size_t code_size; const char *format; size_t format_size; } Program;
typedef struct { size_t size; void *ext; void *client; const Program *program; const char *options; size_t options_size; void *executable; } Compile;
typedef struct { size_t size; void *ext; void *client; const void *data; int type; const int64_t *dims; size_t num_dims; const int64_t *strides; size_t num_strides; int semantics; void *device; void *memory; void *layout; void *done; void *buffer; } FromHost;
typedef struct { size_t size; void *ext; void *buffer; void *layout; void *dst; size_t dst_size; void *event; } ToHost;
typedef struct { size_t size; void *ext; void *object; } One;
typedef struct { size_t size; void *ext; void *callbacks[4]; int launch_id; const int64_t *non_donatable; size_t num_non_donatable; void *rest[6]; char more[32]; } ExecuteOptions;
typedef struct { size_t size; void *ext; void *executable; ExecuteOptions *options; void *const *const *arguments; size_t num_devices; size_t num_args; void **const *outputs; void **events; void *device; } Execute;

enum { /* offsets into the table */
  ERROR_MESSAGE = 48, PLUGIN_INITIALIZE = 64, EVENT_DESTROY = 80, EVENT_AWAIT = 104, CLIENT_CREATE = 120,
  CLIENT_DEVICES = 160, CLIENT_COMPILE = 200, FROM_HOST = 216, EXECUTE = 480, BUFFER_DESTROY = 504,
  TO_HOST = 600, READY_EVENT = 616,
};

static const char *api;

static void call(int offset, void *args) {
  void *error = (*(void *(**)(void *))(api + offset))(args);
  if (error) {
    ErrorMessage m = {sizeof m, 0, error, 0, 0};
    (*(void (**)(void *))(api + ERROR_MESSAGE))(&m);
    fprintf(stderr, "%.*s\n", (int)m.message_size, m.message);
    exit(1);
  }
}

static void one(int offset, void *object) {
  One args = {sizeof args, 0, object};
  call(offset, &args);
}

static void await(void *event) {
  if (!event) return;
  one(EVENT_AWAIT, event);
  one(EVENT_DESTROY, event);
}

static void *client, *device, *executable;

static void *put(const void *data, int64_t elements) {
  FromHost args = {sizeof args, 0, client, data, 11, &elements, 1};
  args.device = device;
  call(FROM_HOST, &args);
  await(args.done);
  return args.buffer;
}

static void *execute(void *x) {
  ExecuteOptions options = {112};
  void *outputs[1], **output_lists[1] = {outputs};
  void *arguments[1] = {x}, *const *argument_lists[1] = {arguments};
  Execute args = {sizeof args, 0, executable, &options, argument_lists, 1, 1, output_lists, 0, 0};
  options.size = 144;
  call(EXECUTE, &args);
  return outputs[0];
}

static void ready(void *buffer) {
  struct { size_t size; void *ext; void *buffer; void *event; } args = {32, 0, buffer, 0};
  call(READY_EVENT, &args);
  await(args.event);
}

/* Into memory of its own, as a caller has it who keeps the result. */
static void fetch(void *buffer, size_t bytes) {
  ToHost args = {sizeof args, 0, buffer, 0, malloc(bytes), bytes, 0};
  call(TO_HOST, &args);
  await(args.event);
  free(args.dst);
}

static char *read_file(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  if (!f) { perror(path); exit(1); }
  fseek(f, 0, SEEK_END);
  *size = ftell(f);
  rewind(f);
  char *data = calloc(1, *size + 1);
  if (fread(data, 1, *size, f) != *size) exit(1);
  fclose(f);
  return data;
}

static int64_t now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) { fprintf(stderr, "%s\n", dlerror()); return 1; }
  api = ((const char *(*)(void))dlsym(library, "GetPjrtApi"))();
  struct { size_t size; void *ext; } nothing = {16, 0};
  call(PLUGIN_INITIALIZE, &nothing);
  NamedValue count = {sizeof count, 0, "cpu_device_count", 16, 1, 1, 1};
  ClientCreate create = {sizeof create, 0, &count, 1};
  call(CLIENT_CREATE, &create);
  client = create.client;
  ClientDevices devices = {sizeof devices, 0, client};
  call(CLIENT_DEVICES, &devices);
  device = devices.devices[0];
  size_t module_size, options_size;
  char *module = read_file(argv[2], &module_size), *options = read_file(argv[3], &options_size);
  Program program = {sizeof program, 0, module, module_size, "mlir", 4};
  Compile compile = {sizeof compile, 0, client, &program, options, options_size, 0};
  call(CLIENT_COMPILE, &compile);
  executable = compile.executable;

  char operation[16];
  long times, bytes;
  while (scanf("%15s %ld %ld", operation, &times, &bytes) == 3) {
    float *data = calloc(1, bytes);
    memset(data, 0, bytes);
    void *x = put(data, bytes / 4);
    int64_t cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
    if (!strcmp(operation, "execute")) {
      for (long i = 0; i < times; i++) {
        void *y = execute(x);
        one(BUFFER_DESTROY, x);
        x = y;
      }
      ready(x);
    } else if (!strcmp(operation, "put")) {
      for (long i = 0; i < times; i++) one(BUFFER_DESTROY, put(data, bytes / 4));
    } else if (!strcmp(operation, "fetch")) {
      for (long i = 0; i < times; i++) fetch(x, bytes);
    } else {
      return 2;
    }
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = now(CLOCK_MONOTONIC) - wall;
    one(BUFFER_DESTROY, x);
    free(data);
    printf("%ld %ld\n", (long)(cpu / times), (long)(wall / times));
    fflush(stdout);
  }
  return 0;
}
