import * as Data from "effect/Data"

/** The error of a command that found a problem and has printed it: it only decides the exit code. */
export class Problem extends Data.TaggedError("Problem") {}
