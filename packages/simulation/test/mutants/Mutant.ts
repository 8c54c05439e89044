/** Mutants: defects that are put into one place of a source file. */

/** A place of a source file, and how it reads when it is wrong. */
export interface Mutant {
  /** Says what it does wrong. */
  readonly name: string
  /** The file, below `packages/`. */
  readonly file: string
  /** Stands in the file exactly once. */
  readonly from: string
  readonly to: string
  /** The defect as it was. Default: it never was there. */
  readonly was?: string
}
