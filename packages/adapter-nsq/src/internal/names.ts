/**
 * From a queue's name to NSQ's topics and channels. Pure.
 *
 * | queue | topic | channel |
 * | --- | --- | --- |
 * | `orders` | `orders` | the default channel |
 * | `orders/billing` | `orders` | `billing` |
 * | `orders/billing.v2` | `orders` | `billing.v2` |
 * | `orders/billing.dlq` | `orders.billing.dlq` | `requeue` |
 * | `orders.dlq` | `orders.<default channel>.dlq` | `requeue` |
 *
 * The retry and dead-letter topics of a queue are named after its topic and its channel. The name of one whose channel has
 * dots has a digest as well, so that no two queues share such a topic.
 */
import { Digest } from "@requeue/core/port"

/** A queue: one channel of a topic. */
export interface Queue {
  readonly topic: string
  readonly channel: string
  /** Whether Requeue named the topic, so that no other program reads it. */
  readonly isOwn: boolean
}

/** The channel as `topic/channel`. */
export const toText = ({ channel, topic }: Queue): string => `${topic}/${channel}`

/** The reason for which nsqd would refuse a name. */
export interface Refused {
  readonly detail: string
  readonly remedy: string
}

/** Whether `parse` refused the name. */
export const isRefused = (parsed: Queue | Refused): parsed is Refused => "detail" in parsed

/** Characters of the longest name of a topic or a channel. https://github.com/nsqio/nsq/blob/master/internal/protocol/names.go */
const limit = 64

/** The channel of dead-letter topics. */
const ownChannel = "requeue"

const ephemeral = "#ephemeral"

const legal = /^[.a-zA-Z0-9_-]+(#ephemeral)?$/

/** Whether nsqd takes the name, of a topic or of a channel. */
const isLegal = (name: string): boolean => name.length <= limit && legal.test(name)

const remedy = `Use letters, digits, ".", "_" and "-", at most ${limit} of them: topic, or topic/channel`

const refuse = (detail: string): Refused => ({ detail, remedy })

/** A digest of 13 letters and digits. It must never change: topics that exist have it in their names. */
const digest = (text: string): string =>
  BigInt(`0x${Digest.hex(text)}`)
    .toString(36)
    .padStart(13, "0")

/**
 * A topic of one queue. A name that would be too long has a digest, and so has one that might be equal to that of another
 * queue, because its channel has dots or `#ephemeral` must go to its end.
 */
const own = ({ channel, topic }: Omit<Queue, "isOwn">, suffix: string, marker = ""): string => {
  const stem = `${topic}.${channel}`
  const name = `${stem}.${suffix}`
  if (!/[.#]/.test(channel) && !topic.includes("#") && name.length <= limit) return name
  const tail = `.${digest(`${topic}/${channel}`)}.${suffix}${marker}`
  return `${stem.replaceAll(ephemeral, "").slice(0, limit - tail.length)}${tail}`
}

/**
 * The queue of the copies that wait for their retry. That of an ephemeral queue is ephemeral too: nobody would remove the
 * copies when the queue has ended.
 */
export const retry = (queue: Queue): Queue => ({
  topic: own(queue, "retry", isEphemeral(queue) ? ephemeral : ""),
  channel: queue.channel,
  isOwn: true
})

/** An ephemeral queue ends with its last consumer, and so do its messages. https://nsq.io/overview/design.html */
const isEphemeral = ({ channel, topic }: Queue): boolean => topic.endsWith(ephemeral) || channel.endsWith(ephemeral)

/** The topic and the channel of a queue's name, or the reason why there are none. */
export const parse = (name: string, defaultChannel: string): Queue | Refused => {
  if (name.endsWith(".dlq")) {
    const origin = parse(name.slice(0, -".dlq".length), defaultChannel)
    // A dead letter outlives its queue, so its topic is never ephemeral.
    return isRefused(origin) ? origin : { topic: own(origin, "dlq"), channel: ownChannel, isOwn: true }
  }
  const [topic = "", channel = defaultChannel, ...rest] = name.split("/")
  if (rest.length > 0) return refuse(`${JSON.stringify(name)} has more than one slash`)
  if (!isLegal(topic)) return refuse(`${JSON.stringify(topic)} is no topic's name`)
  return isLegal(channel) ? { topic, channel, isOwn: false } : refuse(`${JSON.stringify(channel)} is no channel's name`)
}

/** Whether two names are one queue. */
export const isSame = (one: string, other: string, defaultChannel: string): boolean => {
  const [first, second] = [parse(one, defaultChannel), parse(other, defaultChannel)]
  return !isRefused(first) && !isRefused(second) && toText(first) === toText(second)
}

/** The names by which programs call a channel; none for those of retries, and for names that have a digest. */
export const told = (
  { channel, topic }: { readonly topic: string; readonly channel: string | undefined },
  defaultChannel: string
): ReadonlyArray<string> => {
  const [, stem, own, suffix] = /^(.+)\.([^.]+)\.(dlq|retry)$/.exec(topic) ?? []
  const name = (base: string, of: string | undefined) =>
    of === undefined || of === defaultChannel ? base : `${base}/${of}`
  if (suffix === "retry") return []
  if (suffix === undefined || stem === undefined) return [name(topic, channel)]
  const letters = `${name(stem, own)}.dlq`
  const parsed = parse(letters, defaultChannel)
  return isRefused(parsed) || parsed.topic !== topic ? [] : [letters]
}
