/** Mutants of the adapter for SQLite that worlds find: each with the seed and the law. */
import type { Mutant } from "../mutants/Mutant.ts"

/** A mutant, the first seed in which it breaks a law, and that law. */
export interface Planted {
  readonly mutant: Mutant
  readonly seed: number
  readonly law: string
}

const adapter = (file: string): string => `adapter-sqlite/src/internal/${file}.ts`
