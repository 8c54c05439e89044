/**
 * Loads the client when the first one opens: importing the adapter, which may be one of several, does not load AWS'
 * SDK. Lambda functions import the client directly, to load it before their first event.
 */
import * as Effect from "effect/Effect"
import { connecting } from "./driver.ts"

export type { Client } from "./client.ts"

/** Opens a client. Every call reports to `reach` whether SQS is reachable. */
export const connect: ReturnType<typeof connecting> = connecting((settings) =>
  Effect.flatMap(
    Effect.promise(() => import("./client.ts")),
    (client) => client.connect(settings)
  )
)
