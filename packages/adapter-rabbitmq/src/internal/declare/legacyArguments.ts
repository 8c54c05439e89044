/**
 * Queues that the adapter made under former settings. The arguments of an existing queue cannot change. Retry policies work with
 * any delivery limit, with both queue types, and with any exchange of the adapter for the server's dead letters. So the adapter
 * uses such a queue with the arguments that it has. Of queues that are neither work queues nor dead-letter queues, only the type
 * may differ. A queue with other differences stays refused: another program or a person chose its arguments. Pure.
 */
import * as Names from "../names.ts"
import type { Arguments, NativeQueue } from "./objects.ts"
import * as Refusal from "./refusal.ts"

/** The arguments that only the adapter's quorum queues have, besides the limit. */
const ofQuorum: Arguments = {
  "x-queue-type": "quorum",
  "x-dead-letter-strategy": "at-least-once",
  "x-overflow": "reject-publish"
}

/** Whether these are the arguments of a work queue or a dead-letter queue that the adapter declares. */
export const isHome = ({ arguments: args, name }: Pick<NativeQueue, "arguments" | "name">): boolean =>
  args["x-dead-letter-routing-key"] === name && Names.isDead(String(args["x-dead-letter-exchange"]))

/** The same queue of the other type. A limit of 1 makes the server report the delivery limit of a quorum queue. */
const ofOtherType = ({ arguments: args, ...queue }: NativeQueue): NativeQueue => {
  const { "x-delivery-limit": limit, ...others } = args
  if (args["x-queue-type"] !== "quorum")
    return { ...queue, arguments: { ...args, ...ofQuorum, "x-delivery-limit": limit ?? 1 } }
  const rest = Object.fromEntries(Object.entries(others).filter(([name]) => !(name in ofQuorum)))
  return { ...queue, arguments: { ...rest, "x-queue-type": "classic" } }
}

/** A queue without some of its arguments. */
const without = (queue: NativeQueue, isLeftOut: (name: string) => boolean): NativeQueue => ({
  ...queue,
  arguments: Object.fromEntries(Object.entries(queue.arguments).filter(([name]) => !isLeftOut(name)))
})

/**
 * Returns the queue that the server's refusal of `queue` suggests; `undefined` if no former settings explain the refusal. Only a
 * declaration proves it. `hasOther`: the other type was tried before.
 */
export const next = (queue: NativeQueue, refusal: string, hasOther: boolean): NativeQueue | undefined => {
  const told = Refusal.parse(refusal)
  if (told === undefined) return undefined
  const { name, value } = told
  const type = queue.arguments["x-queue-type"]
  // Classic queues were once declared without a type, and the virtual host's default made quorum queues of some.
  if (name === "x-queue-type" && value === undefined && type === "classic") return without(queue, (one) => one === name)
  if (!isHome(queue))
    return name === "x-queue-type" && value === "quorum" && type === "classic"
      ? { ...queue, arguments: { ...queue.arguments, [name]: value } }
      : undefined
  const limit = Number(value)
  if (name === "x-delivery-limit" && value !== undefined && Number.isSafeInteger(limit))
    return { ...queue, arguments: { ...queue.arguments, [name]: limit } }
  if (name === "x-dead-letter-exchange" && typeof value === "string" && Names.isDead(value))
    return { ...queue, arguments: { ...queue.arguments, [name]: value } }
  const isOfQuorum = (one: string) => one === "x-delivery-limit" || (one in ofQuorum && one !== "x-queue-type")
  if (isOfQuorum(name) && value === undefined && hasOther && type === "quorum" && name in queue.arguments)
    return without(queue, isOfQuorum)
  return (name in ofQuorum || name === "x-delivery-limit") && !hasOther ? ofOtherType(queue) : undefined
}

/** The former settings that a queue keeps, in words; empty if the present settings would make the same queue. */
export const kept = (there: Arguments, planned: Arguments): ReadonlyArray<string> =>
  ["x-queue-type", "x-delivery-limit", "x-dead-letter-exchange"].flatMap((name) => {
    const [was, is] = [there[name], planned[name]].map((value) =>
      name === "x-queue-type" ? (value ?? "classic") : value
    )
    return was === is ? [] : [`${name}=${String(was ?? "none")}`]
  })
