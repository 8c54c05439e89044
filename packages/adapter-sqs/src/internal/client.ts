/** The only file that calls the driver: the calls of SQS that are used, and the types that the other files read. */
import {
  type $Command,
  CancelMessageMoveTaskCommand,
  ChangeMessageVisibilityBatchCommand,
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
  type ServiceInputTypes,
  type ServiceOutputTypes,
  SetQueueAttributesCommand,
  SQSClient,
  type SQSClientConfig,
  type SQSClientResolvedConfig,
  StartMessageMoveTaskCommand
} from "@aws-sdk/client-sqs"
import type { ConfigurationError, Connection } from "@requeue/core/port"
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
import { type Teller, telling } from "./telling.ts"

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

/** Milliseconds of the pauses between them. */
const pauses = 2000

/** Milliseconds of a whole call whose attempts may take `requestTimeout` each. */
const whole = (requestTimeout: number): number => attempts * requestTimeout + pauses

/** The SDK's client, and what is done around each call. */
interface Driver {
  readonly sdk: SQSClient
  readonly told: Teller
  readonly closing: Bounded.Closing
  /** Milliseconds of one attempt. */
  readonly requestTimeout: number
  /** Whether the client is the program's, whose functions may throw a secret. */
  readonly isGiven: boolean
}

/** A class of the SDK whose instances are calls. */
type CommandOf<I extends ServiceInputTypes, O extends ServiceOutputTypes> = new (
  input: I
) => $Command<I, O, SQSClientResolvedConfig, ServiceInputTypes, ServiceOutputTypes>

/** How long calls may take, in milliseconds. */
interface Limits extends Bounded.Bounds {
  /** Of one attempt. Default: that of the request handler. */
  readonly requestTimeout?: number
}

/**
 * Makes the function that makes calls of one kind. The SDK resolves its middleware once for all of them; a call by `send`
 * that can be aborted would resolve it every time. `stack` belongs to the function.
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
        const request = args.request as Request // as the SDK's own last step takes it
        const options = { abortSignal, requestTimeout }
        return abortSignal === undefined ? next(args) : sdk.config.requestHandler.handle(request, options)
      }),
    { name: "requeueBounds", step: "deserialize", priority: "low" }
  )
  const handle = new Command({} as I).resolveMiddleware(stack, sdk.config, {}) // each call has an input of its own
  return (input) => bounded.call(input, async () => (await handle({ input })).output)
}

/** The driver. Each method is one API call, and rejects with the SDK's error; it is cut off when the client closes. */
export type Client = ReturnType<typeof calls>

const calls = ({ closing, isGiven, requestTimeout, sdk, told }: Driver) => {
  // The SDK copies its configuration four times for each call.
  makeFast(sdk.config)
  const bounds: Limits = { timeout: whole(requestTimeout), closing, isGiven }
  const method =
    <I, O>(send: (input: I) => Promise<O>) =>
    (input: I): Promise<O> =>
      told(() => send(input))
  const plain = <I extends ServiceInputTypes, O extends ServiceOutputTypes>(Command: CommandOf<I, O>) => {
    let send: ((input: I) => Promise<O>) | undefined
    // Most programs make few of these calls, and a function on Lambda is to start soon.
    return method((input: I) => (send ??= prepared(sdk, Command, bounds))(input))
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
    sendMessageBatch: method(sends(sdk, bounds)),
    deleteMessageBatch: plain(DeleteMessageBatchCommand),
    changeMessageVisibilityBatch: method(changes(sdk, bounds)),
    /** The account of the credentials; `undefined` where their source does not tell it. */
    accountId: async (): Promise<string | undefined> =>
      (await Bounded.within(sdk.config.credentials(), requestTimeout, "credentials")).accountId,
    /**
     * Makes the function that makes polls of so many milliseconds each, all with the same options.
     */
    polls: (waitTime: number): Poll => {
      const attempt = waitTime + requestTimeout
      const limits = { requestTimeout: attempt, timeout: whole(attempt), closing, isGiven }
      return method(prepared(sdk, ReceiveMessageCommand, limits))
    }
  }
}

/**
 * Calls that change visibility, which the SDK does not repeat. Seconds count from the arrival of a call, so that one which
 * is repeated because its answer was lost may give away, or hide, what somebody else has by then.
 */
const changes = (sdk: SQSClient, bounds: Limits) => {
  const stack = sdk.middlewareStack.clone()
  // Others stand behind the one that repeats, so that it cannot be removed.
  stack.add((next) => next, { name: "retryMiddleware", step: "finalizeRequest", priority: "high", override: true })
  return prepared(sdk, ChangeMessageVisibilityBatchCommand, bounds, stack)
}

/** Calls that send, which fail as doubtful where one of their attempts may have been done. */
const sends = (sdk: SQSClient, bounds: Limits) => {
  const { note, tell } = Doubts.make()
  const stack = sdk.middlewareStack.clone()
  stack.addRelativeTo(note, { name: "requeueDoubts", relation: "after", toMiddleware: "retryMiddleware" })
  const send = prepared(sdk, SendMessageBatchCommand, bounds, stack)
  return (input: SendMessageBatchCommandInput) => tell(input, () => send(input))
}

/** An endpoint as the SDK takes it from a function. */
const located = (endpoint: () => Promise<string>, timeout: number) => async () => ({
  url: new URL(await Bounded.within(Credentials.hiding("the function endpoint", endpoint), timeout, "endpoint"))
})

/** A client of ours, and how its credentials are asked for again. */
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
    // Resolves the middleware once for each method; of calls that have options of their own, every time.
    cacheMiddleware: true,
    ...checksums(),
    // The URL that a server gives for a queue may name a host that cannot be reached from here.
    useQueueUrlAsEndpoint: false,
    requestHandler:
      requestHandler !== undefined && "handle" in requestHandler ? requestHandler : { ...handler, ...requestHandler },
    ...(endpoint === undefined
      ? {}
      : { endpoint: typeof endpoint === "string" ? endpoint : located(endpoint, settings.requestTimeout) }),
    ...(credentials === undefined ? {} : { credentials })
  })
  // For every call it filters the values that it would log, and there is no logger.
  sdk.middlewareStack.remove("loggerMiddleware")
  return { sdk, forget: own?.forget }
}

/**
 * A client that is open as long as the scope; of a client that the program gave, our calls alone end. Every call tells `reach`
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
    ).pipe(
      Effect.map(({ closing, forget, sdk }) =>
        calls({ ...settings, sdk, told: telling(reach, forget), closing, isGiven: given !== undefined })
      )
    )
  })
