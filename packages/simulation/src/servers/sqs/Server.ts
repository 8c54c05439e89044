/**
 * SQS as a state machine in virtual time: it takes calls, and answers them by AWS's rules. Each file of this folder has the
 * table of its rules, and their sources.
 *
 * | rule | source |
 * | --- | --- |
 * | permissions of an action hold for its batches | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html |
 * | a call about a queue of another account fails as if it did not exist | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueUrl.html |
 */
import * as Result from "effect/Result"
import type { Host } from "../Host.ts"
import * as Api from "./Api.ts"
import { type AwsError, denied, named } from "./AwsError.ts"
import * as Batches from "./Batches.ts"
import * as CallRules from "./CallRules.ts"
import type { Listener } from "./Facts.ts"
import * as Faults from "./Faults.ts"
import { receiptRefusal } from "./MessageRules.ts"
import * as Moves from "./Moves.ts"
import type { Env, Queue, Settings, Unkindness } from "./Queue.ts"
import * as Queues from "./Queues.ts"
import * as Receipts from "./Receipts.ts"
import * as Receives from "./Receives.ts"
import * as Sends from "./Sends.ts"

/** Options of a server. */
export interface Options extends Partial<Settings> {
  /** Called with each fact about messages. Default: nothing. */
  readonly listen?: Listener
  /** Whether an unkindness happens to a standard queue now. Default: never. */
  readonly happens?: (what: Unkindness, queue: string) => boolean
  /** Why SQS refuses an entry of a batch, beyond the rules for its content. Default: it does not. */
  readonly refuses?: (call: Api.Call, entry: Api.Entry) => AwsError | undefined
}

/** A server. */
export interface Server {
  readonly settings: Settings
  /** Makes a call. Its answer may come later, and comes once. */
  readonly handle: (call: Api.Call, answer: (answer: Api.Reply) => void, effect?: Faults.Effect) => void
  /** Denies these actions, such as `DeleteMessage`, and no others. `queue` limits this to one queue. */
  readonly deny: (actions: ReadonlyArray<string>, queue?: string) => void
  /** The queue of this name; `undefined` if there is none. */
  readonly queue: (name: string) => Queue | undefined
}

/** AWS without its delays. */
const defaults: Settings = {
  region: "eu-west-1",
  account: "000000000000",
  inFlight: 120_000,
  attributesTake: 0,
  countsAge: 0,
  obeysOld: false
}

type Handler = (call: Api.Call, queue: Queue, refuses: Batches.Refuses) => Api.Reply

/** Calls that name no existing queue. */
const queueless = ["CreateQueue", "StartMessageMoveTask", "ListMessageMoveTasks", "CancelMessageMoveTask"]

const methods = (env: Env, receipts: Receipts.Receipts): Readonly<Record<string, Handler>> => {
  const queues = Queues.make(env)
  const moves = Moves.make(env)
  const sends = Sends.make(env)
  const perReceipt =
    (
      deletes: boolean,
      act: (entry: Api.Entry, queue: Queue, client: string | undefined) => ReturnType<Batches.Refuses>
    ): Handler =>
    ({ body: { Entries = [] }, client }, queue, refuses) =>
      Batches.each(Entries, refuses, (entry) => {
        const refused = receiptRefusal(entry, deletes) ?? act(entry, queue, client)
        return refused === undefined ? Result.succeed({}) : Result.fail(refused)
      })
  return {
    CreateQueue: queues.createQueue,
    GetQueueUrl: (_, queue) => queues.getQueueUrl(queue),
    GetQueueAttributes: (call, queue) => queues.getQueueAttributes(queue, call),
    SetQueueAttributes: (call, queue) => queues.setQueueAttributes(queue, call),
    PurgeQueue: (_, queue) => queues.purgeQueue(queue),
    DeleteQueue: (_, queue) => queues.deleteQueue(queue),
    ListDeadLetterSourceQueues: (_, queue) => queues.listDeadLetterSourceQueues(queue),
    StartMessageMoveTask: moves.startMessageMoveTask,
    ListMessageMoveTasks: moves.listMessageMoveTasks,
    CancelMessageMoveTask: moves.cancelMessageMoveTask,
    SendMessageBatch: (call, queue, refuses) => sends.sendMessageBatch(queue, call, refuses),
    DeleteMessageBatch: perReceipt(true, (entry, queue) => receipts.remove(queue, entry)),
    ChangeMessageVisibilityBatch: perReceipt(false, (entry, queue, client) => receipts.change(queue, entry, client))
  }
}

/** Makes a server without queues. */
export const make = (
  host: Host,
  { happens = () => false, listen = () => {}, refuses = () => undefined, ...options }: Options = {}
): Server => {
  const settings = { ...defaults, ...options }
  const queues = new Map<string, Queue>()
  const woken = new Set<Queue>()
  let isBusy = false
  let last = 0
  let refused: { readonly actions: ReadonlyArray<string>; readonly queue: string | undefined } = {
    actions: [],
    queue: undefined
  }

  /** Does something, then serves the polls of queues with new messages: a batch arrives as a whole. */
  const whole = (run: () => void): void => {
    isBusy = true
    run()
    for (const queue of woken) {
      woken.delete(queue)
      receives.serve(queue)
    }
    isBusy = false
  }
  const wake = (queue: Queue): void => {
    woken.add(queue)
    if (!isBusy) whole(() => {})
  }
  const env: Env = {
    host,
    settings,
    listen,
    happens: (what, { isFifo, name }) => !isFifo && happens(what, name),
    queues,
    wake,
    number: () => ++last
  }
  const receipts = Receipts.make(env)
  const receives = Receives.make(env, receipts)
  const known = methods(env, receipts)

  /** The queue of a call, if the call may see it. */
  const find = ({ body, queue }: Api.Call): Queue | undefined => {
    const account = body.QueueOwnerAWSAccountId ?? body.QueueUrl?.split("/").at(-2) ?? settings.account
    return account === settings.account ? queues.get(queue) : undefined
  }

  const act = (call: Api.Call, answer: (answer: Api.Reply) => void, effect: Faults.Effect | undefined): void => {
    const { action, queue: name } = call
    const single = action.replace(/Batch$/, "")
    if (effect?._tag === "refused") return answer(Result.fail(named[effect.error]))
    if (refused.actions.includes(single) && (refused.queue ?? name) === name)
      return answer(Result.fail(denied(single, name)))
    const wrong = CallRules.refusal(call)
    if (wrong !== undefined) return answer(Result.fail(wrong))
    const queue = find(call)
    if (queue === undefined && !queueless.includes(action)) return answer(Result.fail(named.QueueDoesNotExist))
    if (action === "ReceiveMessage") return receives.receiveMessage(queue!, call, answer)
    const refusal = (place: number): AwsError | undefined =>
      Faults.entryError(effect, place) ?? refuses(call, call.body.Entries![place]!)
    answer(known[action]!(call, queue!, refusal))
  }

  return {
    settings,
    handle: (call, answer, effect) => whole(() => act(call, answer, effect)),
    deny: (actions, queue) => {
      refused = { actions, queue }
    },
    queue: (name) => queues.get(name)
  }
}
