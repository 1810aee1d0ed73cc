/* Executes the JavaScript in a file. */
#include <stdio.h>
#include "quickjs.h"

int main(int argc, char **argv) {
    static char text[1 << 16];
    FILE *file = fopen(argv[1], "r");
    size_t size = fread(text, 1, sizeof text - 1, file);
    JSContext *context = JS_NewContext(JS_NewRuntime());
    JSValue value = JS_Eval(context, text, size, argv[1], JS_EVAL_TYPE_GLOBAL);
    return JS_IsException(value);
}
