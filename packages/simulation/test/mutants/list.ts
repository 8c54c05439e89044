/** The mutants. */
import * as Adapters from "./adapters.ts"
import * as Core from "./core.ts"
import * as Programs from "./programs.ts"

export const mutants = [...Core.mutants, ...Programs.mutants, ...Adapters.mutants]
