/** The calls that rows of SQS's contract make, by the driver's client. */
import type { Client, Message, SendEntry } from "@requeue/adapter-sqs/driver"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Contract from "../../contract/Contract.ts"

/** A server as rows see it. */
export interface Sqs {
  readonly client: Client
  /** Lets time pass for the server, in seconds. */
  readonly wait: (seconds: number) => Effect.Effect<void>
  /** Deletes a queue, which no call of the driver does. */
  readonly deleteQueue: (QueueUrl: string) => Effect.Effect<void>
}

/** The server for tests that the rows run on, behind the proxy that adds AWS's rules. */
export const fauxqs = "fauxqs behind the proxy"

/** The quota of messages in flight on servers whose clock a row moves. */
export const quota = 3

export const docs = "docs.aws.amazon.com/AWSSimpleQueueService/latest"

/** A test that LocalStack's authors have validated on AWS. */
export const validated = (test: string): string => `LocalStack ${test}`

const codeIn = (cause: unknown): string => {
  const { Code, name } = Object(cause)
  return String(Code ?? name)
}

const ask = <A>(call: () => Promise<A>): Effect.Effect<A, unknown> =>
  Effect.tryPromise({ try: call, catch: (cause) => cause })

type Entry = Omit<SendEntry, "Id">
type Receive = Partial<Parameters<Client["receiveMessage"]>[0]>

const entry = (given: string | Entry): Entry => (typeof given === "string" ? { MessageBody: given } : given)

/** An error in `Failed`, with its text without what differs from run to run. */
const failed = ({
  Code = "",
  Message = ""
}: {
  readonly Code?: string | undefined
  readonly Message?: string | undefined
}) =>
  `${Code.replace("AWS.SimpleQueueService.", "")}: ${Message.replace(/Value \S+ for/, "Value V for").replace(/handle "\S+"/, "handle")}`

/** The calls of one row. */
const make = ({ driver: { client, deleteQueue, wait }, name }: Contract.Bench<Sqs>) => {
  let queues = 0
  const nameOf = (suffix: string) => `${name(`q${++queues}`)}${suffix}`
  const create = (
    Attributes: Record<string, string> = {},
    QueueName = nameOf(Attributes["FifoQueue"] === "true" ? ".fifo" : "")
  ) =>
    Effect.map(
      ask(() => client.createQueue({ QueueName, Attributes })),
      ({ QueueUrl = "" }) => QueueUrl
    )
  const fifo = (attributes: Record<string, string> = {}) =>
    create({ FifoQueue: "true", ContentBasedDeduplication: "true", ...attributes })
  const batch = (QueueUrl: string, entries: ReadonlyArray<string | Entry>) =>
    ask(() =>
      client.sendMessageBatch({ QueueUrl, Entries: entries.map((each, Id) => ({ ...entry(each), Id: String(Id) })) })
    )
  const receive = (QueueUrl: string, options: Receive = {}) =>
    Effect.map(
      ask(() =>
        client.receiveMessage({
          QueueUrl,
          MaxNumberOfMessages: 10,
          MessageSystemAttributeNames: ["All"],
          MessageAttributeNames: ["All"],
          ...options
        })
      ),
      ({ Messages = [] }) => Messages
    )
  const set = (QueueUrl: string, Attributes: Record<string, string>) =>
    ask(() => client.setQueueAttributes({ QueueUrl, Attributes }))
  const described = (QueueUrl: string, ...names: ReadonlyArray<string>) =>
    Effect.map(
      ask(() =>
        client.getQueueAttributes({ QueueUrl, AttributeNames: (names.length === 0 ? ["All"] : names) as ["All"] })
      ), // Cast, because the SDK lists the names.
      ({ Attributes = {} }): Readonly<Record<string, string>> => Attributes
    )
  const arn = (url: string) => Effect.map(described(url, "QueueArn"), ({ QueueArn = "" }) => QueueArn)
  const redrive = (deadLetters: string, maxReceiveCount = 1) =>
    Effect.map(arn(deadLetters), (deadLetterTargetArn) => ({
      RedrivePolicy: JSON.stringify({ deadLetterTargetArn, maxReceiveCount })
    }))

  return {
    client,
    wait,
    deleteQueue,
    ask,
    nameOf,
    create,
    fifo,
    set,
    described,
    arn,
    redrive,
    receive,
    /** A queue and its dead-letter queue, to which SQS has moved a message for each body. */
    given: (...bodies: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const deadLetters = yield* create()
        const queue = yield* create(yield* redrive(deadLetters))
        for (const body of bodies) yield* batch(queue, [body])
        if (bodies.length > 0) for (let time = 0; time < 2; time++) yield* receive(queue, { VisibilityTimeout: 0 })
        return [queue, deadLetters] as const
      }),
    /** Sends, and returns what became of each entry. */
    send: (QueueUrl: string, ...entries: ReadonlyArray<string | Entry>) =>
      Effect.map(batch(QueueUrl, entries), ({ Failed = [], Successful = [] }) =>
        entries.map((_, place) => {
          const refused = Failed.find(({ Id }) => Id === String(place))
          if (refused !== undefined) return failed(refused)
          return Successful.some(({ Id }) => Id === String(place)) ? "done" : "no answer"
        })
      ),
    batch,
    remove: (QueueUrl: string, ...handles: ReadonlyArray<string | undefined>) =>
      Effect.map(
        ask(() =>
          client.deleteMessageBatch({
            QueueUrl,
            Entries: handles.map((ReceiptHandle, Id) => ({ Id: String(Id), ReceiptHandle }))
          })
        ),
        ({ Failed = [] }) => handles.map((_, place) => failedAt(Failed, place))
      ),
    change: (QueueUrl: string, VisibilityTimeout: number, ...messages: ReadonlyArray<Message | undefined>) =>
      Effect.map(
        ask(() =>
          client.changeMessageVisibilityBatch({
            QueueUrl,
            Entries: messages.map((message, Id) => ({
              Id: String(Id),
              ReceiptHandle: message?.ReceiptHandle,
              VisibilityTimeout
            }))
          })
        ),
        ({ Failed = [] }) => messages.map((_, place) => failedAt(Failed, place))
      ),
    counts: (url: string) =>
      Effect.map(described(url), (all) =>
        ["", "NotVisible", "Delayed"].map((which) => all[`ApproximateNumberOfMessages${which}`])
      ),
    /** The error of a call by its code, or `done`. */
    code: <A>(call: Effect.Effect<A, unknown>): Effect.Effect<string> =>
      Effect.match(call, { onSuccess: () => "done", onFailure: codeIn })
  }
}

const failedAt = (
  all: ReadonlyArray<{
    readonly Id: string | undefined
    readonly Code: string | undefined
    readonly Message?: string | undefined
  }>,
  place: number
): string => {
  const refused = all.find(({ Id }) => Id === String(place))
  return refused === undefined ? "done" : failed(refused)
}

export type World = ReturnType<typeof make>

/** Makes a row. */
export const row = (
  name: string,
  source: string,
  answer: unknown,
  body: (world: World) => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, unknown>
): Contract.Row<Sqs> => ({ name, source, answer, script: (bench) => Effect.gen(() => body(make(bench))) })

/** A row that a server for tests is known to answer otherwise. */
export const unlike = (server: string, one: Contract.Row<Sqs>): Contract.Row<Sqs> => ({ ...one, unlike: [server] })

/** The bodies by their first character: AWS leaves the order of groups open. */
export const byGroup = (messages: ReadonlyArray<Message>): Readonly<Record<string, string>> => {
  const groups: Record<string, string> = {}
  for (const { Body = "" } of messages) groups[Body.slice(0, 1)] = `${groups[Body.slice(0, 1)] ?? ""} ${Body}`.trim()
  return groups
}

export const bodies = (messages: ReadonlyArray<Message>): ReadonlyArray<string | undefined> =>
  messages.map(({ Body }) => Body)

/** Messages of groups that are their first characters. */
export const grouped = (...all: ReadonlyArray<string>): ReadonlyArray<Entry> =>
  all.map((MessageBody) => ({ MessageBody, MessageGroupId: MessageBody.slice(0, 1) }))
