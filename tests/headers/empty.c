/* What a header is put in front of, so that the compiler has something to compile. */
typedef int pc_nothing;
