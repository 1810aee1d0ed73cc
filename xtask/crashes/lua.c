/* Executes the Lua script in a file. */
#include <stdio.h>
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

int main(int argc, char **argv) {
    lua_State *state = luaL_newstate();
    luaL_openlibs(state);
    int status = luaL_dofile(state, argv[1]);
    if (status) fprintf(stderr, "%s\n", lua_tostring(state, -1));
    return status;
}
