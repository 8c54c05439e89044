/** The code of an error, such as `ENOENT`; `undefined` if it has none. */
export const codeOf = (cause: unknown): unknown => (cause instanceof Error && "code" in cause ? cause.code : undefined)
