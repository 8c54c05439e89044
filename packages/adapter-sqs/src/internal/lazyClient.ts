/**
 * Loads the client when the first one opens: importing the adapter, which may be one of several, does not load AWS'
 * SDK. Lambda functions import the client directly, to load it before their first event.
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
