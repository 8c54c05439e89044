/** Calls about messages. Each message of a batch is rejected or done separately. */
import { failedEntry, type AwsError } from "./AwsError.ts"
import * as Call from "./Call.ts"
import type { Attributes } from "./attributes.ts"
import type { Leases } from "./leases.ts"
import { entryRefused } from "./messageRules.ts"
import type { Messages } from "./messages.ts"
import type { Reply, Ask } from "./upstream.ts"

/** Returns the error of an entry by its index. */
export type Refuses = (index: number) => AwsError | undefined

interface Answered {
  readonly Id: string
  readonly MessageId?: string
}

const ok: Reply = { status: 200, headers: {}, body: {} }

const hasHandle = (call: Call.Call) => ["DeleteMessage", "ChangeMessageVisibility"].includes(Call.single(call))

interface State {
  readonly leases: Leases
  readonly messages: Messages
  /** The attributes of the queue. */
  readonly queue: Attributes
}

/** Does a call for each of its messages. `onPurpose` returns the error of entries that a test makes fail. */
export const perMessage = async (
  call: Call.Call,
  ask: Ask,
  { leases, messages, queue }: State,
  onPurpose: Refuses
): Promise<Reply | AwsError> => {
  const leased = hasHandle(call)
  const entries = Call.entriesOf(call).map((entry, index) => ({
    entry,
    refused: onPurpose(index) ?? entryRefused(call, entry, queue) ?? (leased ? leases.refused(call, entry) : undefined)
  }))
  const inBehind = (entry: Call.Entry) =>
    leased ? { ...entry, ReceiptHandle: leases.behind(entry.ReceiptHandle ?? "") } : entry

  if (!Call.isBatch(call)) {
    const refused = entries[0]?.refused
    if (refused !== undefined) return refused
    const got = await leases.inTurn([call.body], () => ask(call.action, inBehind(call.body)))
    if (leases.isDone(call, call.body)) return ok
    if (leased && got.status === 200) leases.done(call, call.body)
    messages.sent(call.queue, call.body.MessageGroupId, got.body["MessageId"])
    return got
  }

  const toDo = entries.filter(({ refused }) => refused === undefined).map(({ entry }) => entry)
  const askAll = () => ask(call.action, { ...call.body, Entries: toDo.map(inBehind) })
  const got = toDo.length === 0 ? ok : await leases.inTurn(toDo, askAll)
  if (got.status !== 200) return got
  const answered = got.body as Readonly<Record<string, ReadonlyArray<Answered>>> // as AWS documents it
  const doneBefore = new Set(toDo.filter((entry) => leases.isDone(call, entry)).map(({ Id = "" }) => Id))
  const isDone = ({ Id }: Answered): boolean => doneBefore.has(Id)
  const { Failed: failing = [], Successful: succeeding = [] } = answered
  const [Failed, Successful] = [
    failing.filter((entry) => !isDone(entry)),
    [...succeeding, ...failing.filter(isDone).map(({ Id }): Answered => ({ Id }))]
  ]
  const done = new Set(Successful.map(({ Id }) => Id))
  for (const entry of toDo) if (leased && done.has(entry.Id ?? "")) leases.done(call, entry)
  const groupOf = new Map(toDo.map(({ Id, MessageGroupId }) => [Id, MessageGroupId]))
  for (const { Id, MessageId } of Successful) messages.sent(call.queue, groupOf.get(Id), MessageId)
  const refusals = entries.flatMap(({ entry: { Id = "" }, refused }) =>
    refused === undefined ? [] : [failedEntry(Id, refused)]
  )
  const failed = [...Failed, ...refusals]
  // AWS leaves out a list that would be empty.
  const body = {
    ...(Successful.length === 0 ? {} : { Successful }),
    ...(failed.length === 0 ? {} : { Failed: failed })
  }
  return { ...got, body }
}
