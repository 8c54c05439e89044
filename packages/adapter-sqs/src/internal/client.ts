/** The only file that calls the driver: the calls of SQS that are used, and the types that the other files read. */
import {
  CancelMessageMoveTaskCommand,
  ChangeMessageVisibilityBatchCommand,
  type ChangeMessageVisibilityBatchCommandInput,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListDeadLetterSourceQueuesCommand,
  ListMessageMoveTasksCommand,
  type Message,
  type MessageAttributeValue,
  PurgeQueueCommand,
  ReceiveMessageCommand,
  type ReceiveMessageCommandInput,
  type ReceiveMessageCommandOutput,
  SendMessageBatchCommand,
  type SendMessageBatchCommandInput,
  type SendMessageBatchRequestEntry,
  SetQueueAttributesCommand,
  SQSClient,
  type SQSClientConfig,
  StartMessageMoveTaskCommand
} from "@aws-sdk/client-sqs"
import { ConfigurationError, type Connection } from "@requeue/core/adapter-kit"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { Address } from "./address.ts"
import * as Credentials from "./credentials.ts"
import { isDoubtful, statusOf, toBrokerError } from "./toBrokerError.ts"

export type { Message, MessageAttributeValue }
/** An entry of `SendMessageBatch`. */
export type SendEntry = SendMessageBatchRequestEntry

/** A function that answers credentials, such as those of `@aws-sdk/credential-providers`. */
type CredentialProvider = Extract<NonNullable<SQSClientConfig["credentials"]>, (...input: never) => unknown>

/** A handler that sends the SDK's requests, or options of the SDK's own. */
type RequestHandler = NonNullable<SQSClientConfig["requestHandler"]>

/** Where requests go: a URL, or a function that answers one. */
type Endpoint = string | (() => Promise<string>)

/** Options that no URL and no config file can hold. */
export interface SdkOptions {
  /**
   * A client of `@aws-sdk/client-sqs` that is used as it is, and never closed. Its region must be that of the URL, and
   * credentials, endpoint and request handler are its own. Default: a client is made from the other options.
   */
  readonly client?: SQSClient | undefined
  /**
   * A function that answers credentials. It is asked again five minutes before they expire, and when SQS says that they
   * have. Default: the access key, else the SDK's default chain of credentials.
   */
  readonly credentials?: CredentialProvider | undefined
  /**
   * A request handler of the SDK, or options of its `NodeHttpHandler`, such as the agent of a proxy. Default: the SDK's, with
   * connections that are kept and the timeouts of the other options.
   */
  readonly requestHandler?: RequestHandler | undefined
  /** An `http:` or `https:` URL, or a function that answers one. Default: that of the region, or the URL's host. */
  readonly endpoint?: Endpoint | undefined
}

/** The settings of a client. Times are in milliseconds. */
interface Settings {
  readonly address: Address
  readonly sdk: SdkOptions
  readonly connectTimeout: number
  readonly requestTimeout: number
}

/** Polls once. */
type Poll = (input: ReceiveMessageCommandInput) => Promise<ReceiveMessageCommandOutput>

/**
 * Attempts of one call. The SDK repeats a call that was throttled or got no answer, 0.1 to 1 second apart, before it
 * rejects.
 */
const attempts = 3

/** The SDK's client, and what is done around each call. */
interface Driver {
  readonly sdk: SQSClient
  /** Makes a call. Tells whether SQS can be reached, and repeats the call once where the credentials have expired. */
  readonly told: <A>(call: () => Promise<A>) => Promise<A>
  /** Aborted when the client closes. */
  readonly closing: AbortSignal
}

/** The driver. Each method is one API call, and rejects with the SDK's error. */
export type Client = ReturnType<typeof calls>

const calls = ({ closing, sdk, told }: Driver) => {
  const call =
    <I, O>(send: (input: I) => Promise<O>) =>
    (input: I): Promise<O> =>
      told(() => send(input))
  return {
    getQueueUrl: call((input: ConstructorParameters<typeof GetQueueUrlCommand>[0]) =>
      sdk.send(new GetQueueUrlCommand(input))
    ),
    createQueue: call((input: ConstructorParameters<typeof CreateQueueCommand>[0]) =>
      sdk.send(new CreateQueueCommand(input))
    ),
    setQueueAttributes: call((input: ConstructorParameters<typeof SetQueueAttributesCommand>[0]) =>
      sdk.send(new SetQueueAttributesCommand(input))
    ),
    getQueueAttributes: call((input: ConstructorParameters<typeof GetQueueAttributesCommand>[0]) =>
      sdk.send(new GetQueueAttributesCommand(input))
    ),
    purgeQueue: call((input: ConstructorParameters<typeof PurgeQueueCommand>[0]) =>
      sdk.send(new PurgeQueueCommand(input))
    ),
    listDeadLetterSourceQueues: call((input: ConstructorParameters<typeof ListDeadLetterSourceQueuesCommand>[0]) =>
      sdk.send(new ListDeadLetterSourceQueuesCommand(input))
    ),
    startMessageMoveTask: call((input: ConstructorParameters<typeof StartMessageMoveTaskCommand>[0]) =>
      sdk.send(new StartMessageMoveTaskCommand(input))
    ),
    listMessageMoveTasks: call((input: ConstructorParameters<typeof ListMessageMoveTasksCommand>[0]) =>
      sdk.send(new ListMessageMoveTasksCommand(input))
    ),
    cancelMessageMoveTask: call((input: ConstructorParameters<typeof CancelMessageMoveTaskCommand>[0]) =>
      sdk.send(new CancelMessageMoveTaskCommand(input))
    ),
    receiveMessage: call((input: ReceiveMessageCommandInput) => sdk.send(new ReceiveMessageCommand(input))),
    sendMessageBatch: call(sends(sdk)),
    deleteMessageBatch: call((input: ConstructorParameters<typeof DeleteMessageBatchCommand>[0]) =>
      sdk.send(new DeleteMessageBatchCommand(input))
    ),
    changeMessageVisibilityBatch: call(changes(sdk)),
    /** The account of the credentials; `undefined` where their source does not tell it. */
    accountId: async (): Promise<string | undefined> => (await sdk.config.credentials()).accountId,
    /**
     * Makes the function that polls, all with the same options; polls are cut off when the client closes. The SDK resolves
     * its middleware once for all polls; a call by `send`, with options of its own, would resolve it every time.
     * `requestTimeout` is in milliseconds.
     */
    polls: (requestTimeout: number): Poll => {
      const options = { requestTimeout, abortSignal: closing }
      const command = new ReceiveMessageCommand({ QueueUrl: undefined })
      const handle = command.resolveMiddleware(sdk.middlewareStack, sdk.config, options)
      return call(async (input: ReceiveMessageCommandInput) => (await handle({ input })).output)
    }
  }
}

/**
 * Calls that change visibility, which the SDK does not repeat. Seconds count from the arrival of a call, so that one which
 * is repeated because its answer was lost may give away, or hide, what somebody else has by then.
 */
const changes = (sdk: SQSClient) => {
  const stack = sdk.middlewareStack.clone()
  // Others stand behind the one that repeats, so that it cannot be removed.
  stack.add((next) => next, { name: "retryMiddleware", step: "finalizeRequest", priority: "high", override: true })
  const command = new ChangeMessageVisibilityBatchCommand({ QueueUrl: undefined, Entries: undefined })
  const handle = command.resolveMiddleware(stack, sdk.config, {})
  return async (input: ChangeMessageVisibilityBatchCommandInput) => (await handle({ input })).output
}

/**
 * Calls that send, which fail as doubtful where one of their attempts may have been done: the SDK repeats a call whose
 * answer was lost, and tells of the last attempt alone, which may have been throttled.
 */
const sends = (sdk: SQSClient) => {
  const doubts = new WeakMap<object, unknown>()
  const stack = sdk.middlewareStack.clone()
  stack.addRelativeTo(
    <Args extends { readonly input: object }, Out>(next: (args: Args) => Promise<Out>) =>
      async (args: Args): Promise<Out> => {
        try {
          return await next(args)
        } catch (cause) {
          if (isDoubtful(toBrokerError(cause, { operation: "publish" }))) doubts.set(args.input, cause)
          throw cause
        }
      },
    { name: "requeueDoubts", relation: "after", toMiddleware: "retryMiddleware" }
  )
  const command = new SendMessageBatchCommand({ QueueUrl: undefined, Entries: undefined })
  const handle = command.resolveMiddleware(stack, sdk.config, {})
  return async (input: SendMessageBatchCommandInput) => {
    try {
      return (await handle({ input })).output
    } catch (cause) {
      throw doubts.get(input) ?? cause
    }
  }
}

/** An endpoint as the SDK takes it from a function. */
const located = (endpoint: () => Promise<string>) => async () => ({ url: new URL(await endpoint()) })

/** A client of ours, and how its credentials are asked for again. */
const make = (
  settings: Settings,
  now: () => number
): { readonly sdk: SQSClient; readonly forget: (() => void) | undefined } => {
  const { credentials: key, endpoint: host, region } = settings.address
  const { endpoint = host, requestHandler } = settings.sdk
  const own = settings.sdk.credentials === undefined ? undefined : Credentials.make(settings.sdk.credentials, now)
  const fixed = key && {
    accessKeyId: key.accessKeyId,
    secretAccessKey: Redacted.value(key.secretAccessKey),
    ...(key.sessionToken === undefined ? {} : { sessionToken: Redacted.value(key.sessionToken) })
  }
  const credentials = own?.provider ?? fixed
  const handler = {
    connectionTimeout: settings.connectTimeout,
    requestTimeout: settings.requestTimeout,
    throwOnRequestTimeout: true,
    httpAgent: { keepAlive: true, maxSockets: Infinity },
    httpsAgent: { keepAlive: true, maxSockets: Infinity }
  }
  const sdk = new SQSClient({
    region,
    maxAttempts: attempts,
    // Resolves the middleware once for each method; of calls that have options of their own, every time.
    cacheMiddleware: true,
    // The URL that a server gives for a queue may name a host that cannot be reached from here.
    useQueueUrlAsEndpoint: false,
    requestHandler:
      requestHandler !== undefined && "handle" in requestHandler ? requestHandler : { ...handler, ...requestHandler },
    ...(endpoint === undefined ? {} : { endpoint: typeof endpoint === "string" ? endpoint : located(endpoint) }),
    ...(credentials === undefined ? {} : { credentials })
  })
  // For every call it filters the values that it would log, and there is no logger.
  sdk.middlewareStack.remove("loggerMiddleware")
  return { sdk, forget: own?.forget }
}

/** Makes calls, and tells `reach` of each whether SQS could be reached. */
const teller =
  (reach: Connection.Tracker | undefined, forget: (() => void) | undefined): Driver["told"] =>
  async (call) => {
    try {
      const output = await call().catch((error: unknown) => {
        if (forget === undefined || !Credentials.isExpired(error)) throw error
        forget()
        return call()
      })
      reach?.set("up")
      return output
    } catch (error) {
      reach?.set(statusOf(error) === undefined ? "down" : "up")
      throw error
    }
  }

/** A call goes to the region of its client, whatever the URL says: it would be another queue. */
const checkRegion = (sdk: SQSClient, { region }: Settings["address"]) =>
  Effect.flatMap(
    Effect.tryPromise({
      try: () => sdk.config.region(),
      catch: () => refuse("its region cannot be read", "Make it with a region")
    }),
    (its) =>
      its === region
        ? Effect.void
        : Effect.fail(
            refuse(
              `its region is ${its}, the URL names ${region}`,
              `Write sqs://${its}, or make a client for ${region}`
            )
          )
  )

const refuse = (detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ broker: "sqs", field: "client", detail, remedy })

/**
 * A client that is open as long as the scope; of a client that the program gave, polls alone end. Every call tells `reach`
 * whether SQS can be reached. Fails where the program's client is of another region than the URL.
 */
export const connect = (
  settings: Settings,
  reach?: Connection.Tracker
): Effect.Effect<Client, ConfigurationError.ConfigurationError, Scope.Scope> =>
  Effect.gen(function* () {
    const given = settings.sdk.client
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    if (given !== undefined) yield* checkRegion(given, settings.address)
    return yield* Effect.acquireRelease(
      Effect.sync(() => ({
        closing: new AbortController(),
        ...(given === undefined ? make(settings, now) : { sdk: given, forget: undefined })
      })),
      ({ closing, sdk }) =>
        Effect.sync(() => {
          closing.abort()
          if (sdk !== given) sdk.destroy()
        })
    ).pipe(
      Effect.map(({ closing, forget, sdk }) => calls({ sdk, told: teller(reach, forget), closing: closing.signal }))
    )
  })
