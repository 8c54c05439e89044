import * as Data from "effect/Data"

/** The error of a command that has found and printed a problem. The error only decides the exit code. */
export class Problem extends Data.TaggedError("Problem") {}
