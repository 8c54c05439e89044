/**
 * Contracts: scripts of a driver's calls, each with the server's answer. The same script runs on the simulated server, in virtual
 * time, and on the real one. Both must give the answer of the row.
 */
import * as VirtualTime from "@requeue/conformance/VirtualTime"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { describe, expect, test } from "vitest"

/** What a script works with. */
export interface Bench<D> {
  readonly driver: D
  /** Returns a name that no other row uses. */
  readonly name: (base: string) => string
}

/** A script, and its answer: plain data without times, ids and names that differ from run to run. */
export interface Row<D> {
  readonly name: string
  /** The page of the documentation, the line of the server's source, or the version on which it was seen. */
  readonly source: string
  readonly script: (bench: Bench<D>) => Effect.Effect<unknown, unknown, Scope.Scope>
  readonly answer: unknown
  /** Real servers, by their names, that are known to answer otherwise, such as servers for tests. Default: none. */
  readonly unlike?: ReadonlyArray<string>
}

interface Options<D> {
  /** The server, with its version. */
  readonly name: string
  readonly open: Effect.Effect<D, unknown, Scope.Scope>
  /** Whether the server is simulated. */
  readonly isVirtual: boolean
}

/** Registers every row as a test. */
export const register = <D>(rows: ReadonlyArray<Row<D>>, { isVirtual, name, open }: Options<D>): void => {
  describe(`contract of ${name}`, () => {
    const run = crypto.randomUUID().slice(0, 8)
    for (const [index, { answer, name: title, script, source, unlike = [] }] of rows.entries()) {
      const program = Effect.scoped(
        Effect.flatMap(open, (driver) => script({ driver, name: (base) => `${base}-${run}-${index}` }))
      )
      test.concurrent(`${title} (${source})`, async ({ expect: expectHere }) => {
        const seen = await Effect.runPromise(isVirtual ? VirtualTime.run(program) : program)
        if (unlike.includes(name)) expectHere(seen).not.toEqual(answer)
        else expectHere(seen).toEqual(answer)
      })
    }
    test("has rows", () => expect(rows.length).toBeGreaterThan(0))
  })
}
