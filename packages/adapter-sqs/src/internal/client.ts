/** The SQS calls that the adapter uses. No other file calls the SDK. */
import {
  type $Command,
  CancelMessageMoveTaskCommand,
  type CancelMessageMoveTaskRequest,
  type CancelMessageMoveTaskResult,
  ChangeMessageVisibilityBatchCommand,
  type ChangeMessageVisibilityBatchRequest,
  type ChangeMessageVisibilityBatchResult,
  CreateQueueCommand,
  type CreateQueueRequest,
  type CreateQueueResult,
  DeleteMessageBatchCommand,
  type DeleteMessageBatchRequest,
  type DeleteMessageBatchResult,
  GetQueueAttributesCommand,
  type GetQueueAttributesRequest,
  type GetQueueAttributesResult,
  GetQueueUrlCommand,
  type GetQueueUrlRequest,
  type GetQueueUrlResult,
  ListDeadLetterSourceQueuesCommand,
  type ListDeadLetterSourceQueuesRequest,
  type ListDeadLetterSourceQueuesResult,
  ListMessageMoveTasksCommand,
  type ListMessageMoveTasksRequest,
  type ListMessageMoveTasksResult,
  type Message,
  type MessageAttributeValue,
  PurgeQueueCommand,
  type PurgeQueueRequest,
  ReceiveMessageCommand,
  type ReceiveMessageRequest,
  type ReceiveMessageResult,
  SendMessageBatchCommand,
  type SendMessageBatchRequest,
  type SendMessageBatchRequestEntry,
  type SendMessageBatchResult,
  type ServiceInputTypes,
  type ServiceOutputTypes,
  SetQueueAttributesCommand,
  type SetQueueAttributesRequest,
  SQSClient,
  type SQSClientConfig,
  type SQSClientResolvedConfig,
  StartMessageMoveTaskCommand,
  type StartMessageMoveTaskRequest,
  type StartMessageMoveTaskResult
} from "@aws-sdk/client-sqs"
import type { ConfigurationError } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { type Address, checkRegion } from "./address.ts"
import * as Bounded from "./bounded.ts"
import { checksums } from "./checksums.ts"
import * as Credentials from "./credentials.ts"
import * as Doubts from "./doubts.ts"
import { makeFast } from "./fastProperties.ts"

export type { Message, MessageAttributeValue }
/** An entry of `SendMessageBatch`. */
export type SendEntry = SendMessageBatchRequestEntry

/** A function that returns credentials, such as those of `@aws-sdk/credential-providers`. */
type CredentialProvider = Extract<NonNullable<SQSClientConfig["credentials"]>, (...input: never) => unknown>

/** A request handler of the SDK, or options for the default one. */
type RequestHandler = NonNullable<SQSClientConfig["requestHandler"]>

/** The endpoint: a URL, or a function that returns one. */
type Endpoint = string | (() => Promise<string>)

/** Options that no URL and no config file can hold. */
export interface SdkOptions {
  /** Client of `@aws-sdk/client-sqs` for the URL's region, used unchanged and never closed. Default: a new client. */
  readonly client?: SQSClient | undefined
  /**
   * Function that returns credentials; called again five minutes before they expire. Default: the access key, else the
   * SDK's credential chain.
   */
  readonly credentials?: CredentialProvider | undefined
  /** Request handler of the SDK, or options of `NodeHttpHandler`, such as a proxy agent. Default: the SDK's. */
  readonly requestHandler?: RequestHandler | undefined
  /** `http:` or `https:` URL, or a function that returns one. Default: the region's, or the URL's host. */
  readonly endpoint?: Endpoint | undefined
}

/** The settings of a client. Times are in milliseconds. */
export interface Settings {
  readonly address: Address
  readonly sdk: SdkOptions
  readonly connectTimeout: number
  readonly requestTimeout: number
}

/** An API call of SQS. It rejects with the SDK's error, and is aborted when the client closes. */
export type Call<I, O> = (input: I) => Promise<O>

/** The calls of SQS that the adapter makes. Each repeats attempts that were throttled or got no answer. */
export interface Client {
  readonly getQueueUrl: Call<GetQueueUrlRequest, GetQueueUrlResult>
  readonly createQueue: Call<CreateQueueRequest, CreateQueueResult>
  readonly setQueueAttributes: Call<SetQueueAttributesRequest, unknown>
  readonly getQueueAttributes: Call<GetQueueAttributesRequest, GetQueueAttributesResult>
  readonly purgeQueue: Call<PurgeQueueRequest, unknown>
  readonly listDeadLetterSourceQueues: Call<ListDeadLetterSourceQueuesRequest, ListDeadLetterSourceQueuesResult>
  readonly startMessageMoveTask: Call<StartMessageMoveTaskRequest, StartMessageMoveTaskResult>
  readonly listMessageMoveTasks: Call<ListMessageMoveTasksRequest, ListMessageMoveTasksResult>
  readonly cancelMessageMoveTask: Call<CancelMessageMoveTaskRequest, CancelMessageMoveTaskResult>
  readonly receiveMessage: Call<ReceiveMessageRequest, ReceiveMessageResult>
  /** Fails as doubtful, or returns the doubt, if an earlier attempt may have taken effect. */
  readonly sendMessageBatch: Call<SendMessageBatchRequest, SendMessageBatchResult & Doubts.Doubted>
  readonly deleteMessageBatch: Call<DeleteMessageBatchRequest, DeleteMessageBatchResult>
  /** Never repeated: the seconds count from arrival, and another consumer may have the message by then. */
  readonly changeMessageVisibilityBatch: Call<ChangeMessageVisibilityBatchRequest, ChangeMessageVisibilityBatchResult>
  /** Returns the account of the credentials; `undefined` if their source does not report it. */
  readonly accountId: () => Promise<string | undefined>
  /** Returns a function that polls for `waitTime` milliseconds. */
  readonly polls: (waitTime: number) => Call<ReceiveMessageRequest, ReceiveMessageResult>
}

/**
 * Attempts of one call. The SDK repeats a call that was throttled or got no answer, at intervals of 0.1 to 1 second.
 */
const attempts = 3

/** Milliseconds for the pauses between attempts. */
const pauses = 2000

/** Returns the milliseconds for a call with all attempts. */
const whole = (requestTimeout: number): number => attempts * requestTimeout + pauses

/** The SDK's client, and what limits its calls. */
interface Driver {
  readonly sdk: SQSClient
  readonly closing: Bounded.Closing
  /** Milliseconds for one attempt. */
  readonly requestTimeout: number
  /** Whether the client is the program's: its errors may contain a secret. */
  readonly isGiven: boolean
  /** Forgets the credentials, if they can be renewed. */
  readonly forget: (() => void) | undefined
}

/** A class of the SDK whose instances are calls. */
type CommandOf<I extends ServiceInputTypes, O extends ServiceOutputTypes> = new (
  input: I
) => $Command<I, O, SQSClientResolvedConfig, ServiceInputTypes, ServiceOutputTypes>

/** How long calls may take, in milliseconds. */
interface Limits extends Bounded.Bounds {
  /** Milliseconds for one attempt. Default: the request handler's. */
  readonly requestTimeout?: number
}

/**
 * Returns a function for calls of one kind. The SDK resolves its middleware once for all of them; an abortable call
 * with `send` would resolve it every time. The function owns `stack`.
 */
const prepared = <I extends ServiceInputTypes, O extends ServiceOutputTypes>(
  sdk: SQSClient,
  Command: CommandOf<I, O>,
  { requestTimeout, ...bounds }: Limits,
  stack = sdk.middlewareStack.clone()
): ((input: I) => Promise<O>) => {
  type Request = Parameters<typeof sdk.config.requestHandler.handle>[0]
  const bounded = Bounded.make(bounds)
  stack.add(
    (next) => (args) =>
      bounded.hand(args.input, (abortSignal) => {
        const request = args.request as Request // the type in the SDK's last step
        const options = { abortSignal, requestTimeout }
        return abortSignal === undefined ? next(args) : sdk.config.requestHandler.handle(request, options)
      }),
    { name: "requeueBounds", step: "deserialize", priority: "low" }
  )
  const handle = new Command({} as I).resolveMiddleware(stack, sdk.config, {}) // the input is passed with each call
  return (input) => bounded.call(input, async () => (await handle({ input })).output)
}

/** Repeats a call once if the credentials have expired and `forget` can renew them. */
const renewing = <I, O>(send: Call<I, O>, forget: (() => void) | undefined): Call<I, O> =>
  forget === undefined
    ? send
    : (input) =>
        send(input).catch((error: unknown) => {
          if (!Credentials.isExpired(error)) throw error
          forget()
          return send(input)
        })

const calls = ({ closing, forget, isGiven, requestTimeout, sdk }: Driver): Client => {
  // The SDK copies its configuration four times per call.
  makeFast(sdk.config)
  const bounds: Limits = { timeout: whole(requestTimeout), closing, isGiven }
  const plain = <I extends ServiceInputTypes, O extends ServiceOutputTypes>(Command: CommandOf<I, O>): Call<I, O> => {
    let send: Call<I, O> | undefined
    // Prepared on first use: most programs make few of these calls, and Lambda functions must start fast.
    return renewing((input) => (send ??= prepared(sdk, Command, bounds))(input), forget)
  }
  return {
    getQueueUrl: plain(GetQueueUrlCommand),
    createQueue: plain(CreateQueueCommand),
    setQueueAttributes: plain(SetQueueAttributesCommand),
    getQueueAttributes: plain(GetQueueAttributesCommand),
    purgeQueue: plain(PurgeQueueCommand),
    listDeadLetterSourceQueues: plain(ListDeadLetterSourceQueuesCommand),
    startMessageMoveTask: plain(StartMessageMoveTaskCommand),
    listMessageMoveTasks: plain(ListMessageMoveTasksCommand),
    cancelMessageMoveTask: plain(CancelMessageMoveTaskCommand),
    receiveMessage: plain(ReceiveMessageCommand),
    sendMessageBatch: renewing(sends(sdk, bounds), forget),
    deleteMessageBatch: plain(DeleteMessageBatchCommand),
    changeMessageVisibilityBatch: renewing(changes(sdk, bounds), forget),
    accountId: async () => (await Bounded.within(sdk.config.credentials(), requestTimeout, "credentials")).accountId,
    polls: (waitTime) => {
      const attempt = waitTime + requestTimeout
      const limits = { requestTimeout: attempt, timeout: whole(attempt), closing, isGiven }
      return renewing(prepared(sdk, ReceiveMessageCommand, limits), forget)
    }
  }
}

/**
 * Calls that change visibility, which the SDK must not repeat. Their seconds count from arrival: a repeated call may
 * release or hide a message that another consumer has by then.
 */
const changes = (sdk: SQSClient, bounds: Limits) => {
  const stack = sdk.middlewareStack.clone()
  // Replaced, because other middleware depends on the retry middleware.
  stack.add((next) => next, { name: "retryMiddleware", step: "finalizeRequest", priority: "high", override: true })
  return prepared(sdk, ChangeMessageVisibilityBatchCommand, bounds, stack)
}

/** Calls that send. They fail as doubtful if one of their attempts may have taken effect. */
const sends = (sdk: SQSClient, bounds: Limits) => {
  const { note, tell } = Doubts.make()
  const stack = sdk.middlewareStack.clone()
  stack.addRelativeTo(note, { name: "requeueDoubts", relation: "after", toMiddleware: "retryMiddleware" })
  const send = prepared(sdk, SendMessageBatchCommand, bounds, stack)
  return (input: SendMessageBatchRequest) => tell(input, () => send(input))
}

/** Converts an endpoint function to the SDK's form. */
const located = (endpoint: () => Promise<string>, timeout: number) => async () => ({
  url: new URL(await Bounded.within(Credentials.hiding("the function endpoint", endpoint), timeout, "endpoint"))
})

/** Makes a client, and the function that forgets its credentials. */
const make = (
  settings: Settings,
  now: () => number
): { readonly sdk: SQSClient; readonly forget: (() => void) | undefined } => {
  const { credentials: key, endpoint: host, region } = settings.address
  const { endpoint = host, requestHandler } = settings.sdk
  const own =
    settings.sdk.credentials === undefined
      ? undefined
      : Credentials.make(settings.sdk.credentials, now, settings.requestTimeout)
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
    // Resolves the middleware once per method, except for calls with options.
    cacheMiddleware: true,
    ...checksums(),
    // A server's queue URLs may name an unreachable host.
    useQueueUrlAsEndpoint: false,
    requestHandler:
      requestHandler !== undefined && "handle" in requestHandler ? requestHandler : { ...handler, ...requestHandler },
    ...(endpoint === undefined
      ? {}
      : { endpoint: typeof endpoint === "string" ? endpoint : located(endpoint, settings.requestTimeout) }),
    ...(credentials === undefined ? {} : { credentials })
  })
  // It filters the values of every call, although there is no logger.
  sdk.middlewareStack.remove("loggerMiddleware")
  return { sdk, forget: own?.forget }
}

/**
 * Opens a client until the scope closes; only our calls end on the program's client. Fails if the program's client is for
 * another region than the URL.
 */
export const connect = (
  settings: Settings
): Effect.Effect<Client, ConfigurationError.ConfigurationError, Scope.Scope> =>
  Effect.gen(function* () {
    const given = settings.sdk.client
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    if (given !== undefined) {
      const region = () => Bounded.within(given.config.region(), settings.requestTimeout, "its region")
      yield* checkRegion(settings.address, region)
    }
    return yield* Effect.acquireRelease(
      Effect.sync(() => ({
        closing: Bounded.open(),
        ...(given === undefined ? make(settings, now) : { sdk: given, forget: undefined })
      })),
      ({ closing, sdk }) =>
        Effect.sync(() => {
          closing.close()
          if (sdk !== given) sdk.destroy()
        })
    ).pipe(Effect.map((opened) => calls({ ...settings, ...opened, isGiven: given !== undefined })))
  })
