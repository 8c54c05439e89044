/** The only file that imports the driver: the calls of SQS that are used, and the types that the other files read. */
import {
  type Message,
  type MessageAttributeValue,
  ReceiveMessageCommand,
  type ReceiveMessageCommandInput,
  type ReceiveMessageCommandOutput,
  type SendMessageBatchRequestEntry,
  SQS
} from "@aws-sdk/client-sqs"
import type { Connection } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { Settings } from "../SqsOptions.ts"
import { statusOf } from "./toBrokerError.ts"

export type { Message, MessageAttributeValue }
/** An entry of `SendMessageBatch`. */
export type SendEntry = SendMessageBatchRequestEntry

/** The driver. Each method is one API call, and rejects with the SDK's error. */
export type Client = Pick<
  SQS,
  | "getQueueUrl"
  | "createQueue"
  | "setQueueAttributes"
  | "getQueueAttributes"
  | "purgeQueue"
  | "listDeadLetterSourceQueues"
  | "startMessageMoveTask"
  | "listMessageMoveTasks"
  | "cancelMessageMoveTask"
  | "receiveMessage"
  | "sendMessageBatch"
  | "deleteMessageBatch"
  | "changeMessageVisibilityBatch"
  | "destroy"
  | "middlewareStack"
  | "config"
>

/**
 * Attempts of one call. The SDK repeats a call that was throttled or got no answer, 0.1 to 1 second apart, before it
 * rejects.
 */
const attempts = 3

/**
 * Attempts of a call that changes visibility. Seconds count from its arrival, so that one which is repeated because its
 * answer was lost may give away, or hide, what somebody else has by then.
 */
const once = 1

/** A client that is open as long as the scope. Every call tells `reach` whether SQS can be reached. */
export const connect = (settings: Settings, reach?: Connection.Tracker): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const unrepeated = make(settings, once, reach)
        const client = make(settings, attempts, reach)
        return {
          unrepeated,
          client: Object.assign(client, {
            changeMessageVisibilityBatch: unrepeated.changeMessageVisibilityBatch.bind(unrepeated)
          })
        }
      }),
      ({ client, unrepeated }) =>
        Effect.sync(() => {
          client.destroy()
          unrepeated.destroy()
        })
    ),
    ({ client }) => client
  )

/**
 * Makes the function that polls, all with the same options. The SDK resolves its middleware once for all polls; a call
 * by a method, with options of its own, would resolve it every time.
 */
export const polls = (
  { config, middlewareStack }: Client,
  options: { readonly requestTimeout: number; readonly abortSignal: AbortSignal }
) => {
  const handle = new ReceiveMessageCommand({ QueueUrl: undefined }).resolveMiddleware(middlewareStack, config, options)
  return async (input: ReceiveMessageCommandInput): Promise<ReceiveMessageCommandOutput> =>
    (await handle({ input })).output
}

const make = (settings: Settings, maxAttempts: number, reach: Connection.Tracker | undefined): SQS => {
  const { credentials, endpoint, region } = settings.address
  const client = new SQS({
    region,
    maxAttempts,
    // Resolves the middleware once for each method; of calls that have options of their own, every time.
    cacheMiddleware: true,
    // The URL that a server gives for a queue may name a host that cannot be reached from here.
    useQueueUrlAsEndpoint: false,
    requestHandler: {
      connectionTimeout: settings.connectTimeout,
      requestTimeout: settings.requestTimeout,
      throwOnRequestTimeout: true,
      httpAgent: { keepAlive: true, maxSockets: Infinity },
      httpsAgent: { keepAlive: true, maxSockets: Infinity }
    },
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined
      ? {}
      : {
          credentials: {
            accessKeyId: credentials.accessKeyId,
            secretAccessKey: Redacted.value(credentials.secretAccessKey)
          }
        })
  })
  // For every call it filters the values that it would log, and there is no logger.
  client.middlewareStack.remove("loggerMiddleware")
  if (reach === undefined) return client
  client.middlewareStack.add(
    (next) => async (args) => {
      try {
        const output = await next(args)
        reach.set("up")
        return output
      } catch (error) {
        reach.set(statusOf(error) === undefined ? "down" : "up")
        throw error
      }
    },
    { step: "initialize" }
  )
  return client
}
