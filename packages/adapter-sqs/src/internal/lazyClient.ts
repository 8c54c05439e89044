/**
 * The client of {@link connect}, loaded when the first one opens: an import of the adapter, which may only be one of several
 * to choose from, does not load AWS' SDK. A function on Lambda imports the client itself, because its time to start is
 * before its first event.
 */
import * as Effect from "effect/Effect"
import type * as Client from "./client.ts"

export type { Client } from "./client.ts"

/** Opens a client, as `connect` of `client.ts` does. */
export const connect: typeof Client.connect = (settings, reach) =>
  Effect.flatMap(
    Effect.promise(() => import("./client.ts")),
    (client) => client.connect(settings, reach)
  )
