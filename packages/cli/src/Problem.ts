/** What a command found is not as it should be. The command has printed what; the exit code says it to scripts. */
import * as Data from "effect/Data"

export class Problem extends Data.TaggedError("Problem") {}
