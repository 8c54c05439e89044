/** The only file that imports the driver: the calls of SQS that are used, and the shapes that the other files read. */
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

export type { Message, MessageAttributeValue }
export type SendEntry = SendMessageBatchRequestEntry

/** Each method is one API call; it rejects with the SDK's error. */
export type Client = Pick<
  SQS,
  | "getQueueUrl"
  | "createQueue"
  | "setQueueAttributes"
  | "getQueueAttributes"
  | "purgeQueue"
  | "startMessageMoveTask"
  | "listMessageMoveTasks"
  | "receiveMessage"
  | "sendMessageBatch"
  | "deleteMessageBatch"
  | "changeMessageVisibilityBatch"
  | "destroy"
  | "middlewareStack"
  | "config"
>

/**
 * Calls are repeated by the SDK when they were throttled or got no good answer: three times at most, 0.1 to 1 second
 * apart. What then fails is reported.
 */
const attempts = 3

/** SQS has said no: it can be reached. */
const isAnswer = (error: unknown): boolean =>
  (error as { $metadata?: { httpStatusCode?: unknown } } | undefined)?.$metadata?.httpStatusCode !== undefined

/** Open as long as the scope; `reach` is told whether SQS can be reached, by every call. */
export const connect = (settings: Settings, reach?: Connection.Tracker): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => make(settings, reach)),
    (client) => Effect.sync(() => client.destroy())
  )

/** Polls, all with the same options: as what the SDK remembers of other calls, how they are made is found out once. */
export const polls = (
  { config, middlewareStack }: Client,
  options: { readonly requestTimeout: number; readonly abortSignal: AbortSignal }
) => {
  const handle = new ReceiveMessageCommand({ QueueUrl: undefined }).resolveMiddleware(middlewareStack, config, options)
  return async (input: ReceiveMessageCommandInput): Promise<ReceiveMessageCommandOutput> =>
    (await handle({ input })).output
}

const make = (settings: Settings, reach: Connection.Tracker | undefined): Client => {
  const { credentials, endpoint, region } = settings.address
  const client = new SQS({
    region,
    maxAttempts: attempts,
    // Of a call that takes no options of its own, the SDK remembers how it is made.
    cacheMiddleware: true,
    // The URL that a server gives for a queue may name a host that is not ours to reach.
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
  // It filters what it would log out of every call, and there is no log.
  client.middlewareStack.remove("loggerMiddleware")
  if (reach === undefined) return client
  client.middlewareStack.add(
    (next) => async (args) => {
      try {
        const answer = await next(args)
        reach.set("up")
        return answer
      } catch (error) {
        reach.set(isAnswer(error) ? "up" : "down")
        throw error
      }
    },
    { step: "initialize" }
  )
  return client
}
