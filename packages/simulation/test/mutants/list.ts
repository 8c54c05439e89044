/** The mutants. */
import * as Adapters from "./adapters.ts"
import * as Core from "./core.ts"

export const mutants = [...Core.mutants, ...Adapters.mutants]
