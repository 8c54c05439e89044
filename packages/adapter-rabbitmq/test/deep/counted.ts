/** Counts what clients ask of a server, as its proxy sees it. */
import * as Effect from "effect/Effect"
import type { Server } from "../real/server.ts"

/** How often each command has passed since the count began. */
export interface Counted {
  readonly channels: () => number
  /** Declarations of exchanges, queues and bindings, those that only look included. */
  readonly declarations: () => number
}

/** Counts from now on, for as long as the scope lives. */
export const counted = ({ proxy }: Server) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const seen = new Map<string, number>()
        const count = ({ name }: { readonly name: string }): boolean => {
          seen.set(name, (seen.get(name) ?? 0) + 1)
          return false
        }
        const { end } = proxy.loseNext(count, "command")
        return { end, of: (name: string) => seen.get(name) ?? 0 }
      }),
      ({ end }) => Effect.sync(end)
    ),
    ({ of }): Counted => ({ channels: () => of("channel"), declarations: () => of("declare") })
  )
