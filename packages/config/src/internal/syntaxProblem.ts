/**
 * The error of a text that cannot be parsed. It shows no part of the text except names of variables, because it may be a
 * password.
 */
export class SyntaxProblem extends Error {
  readonly remedy: string
  constructor(detail: string, remedy: string) {
    super(detail)
    this.remedy = remedy
  }
}

/** Where in the text the problem is. */
export const place = ({ col, line }: { readonly line: number; readonly col: number }): string =>
  `at line ${line}, column ${col}`
