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
 * The retry and dead-letter topics of a queue are named after its topic and its channel. If the channel has dots, the
 * name also has a digest: no two queues share such a topic.
 */
import { Digest } from "@requeue/core/port"

/** A queue: one channel of a topic. */
export interface Queue {
  readonly topic: string
  readonly channel: string
  /** Whether Requeue named the topic; then no other program reads it. */
  readonly isOwn: boolean
}

/** The queue of a program's name. A class: see `ShortList`. */
class Named implements Queue {
  readonly topic: string
  readonly channel: string
  readonly isOwn = false

  constructor(topic: string, channel: string) {
    this.topic = topic
    this.channel = channel
  }
}

/** Formats the queue as `topic/channel`. */
export const toText = ({ channel, topic }: Queue): string => `${topic}/${channel}`

/** Why nsqd would refuse a name. */
export interface Refused {
  readonly detail: string
  readonly remedy: string
}

/** Whether `parse` refused the name. */
export const isRefused = (parsed: Queue | Refused): parsed is Refused => "detail" in parsed

/**
 * Characters of the longest name of a topic or a channel.
 * https://github.com/nsqio/nsq/blob/master/internal/protocol/names.go
 */
const limit = 64

/** The channel of dead-letter topics. */
const ownChannel = "requeue"

const ephemeral = "#ephemeral"

const legal = /^[.a-zA-Z0-9_-]+(#ephemeral)?$/

/** Whether nsqd accepts the name for a topic or channel. */
const isLegal = (name: string): boolean => name.length <= limit && legal.test(name)

const remedy = `Use letters, digits, ".", "_" and "-", at most ${limit} of them: topic, or topic/channel`

const refuse = (detail: string): Refused => ({ detail, remedy })

/** Returns a digest of 13 letters and digits. It must never change: existing topics have it in their names. */
const digest = (text: string): string =>
  BigInt(`0x${Digest.hex(text)}`)
    .toString(36)
    .padStart(13, "0")

/**
 * Returns the name of a topic that belongs to one queue. The name has a digest if it would be too long, or if another
 * queue could have the same one, because the channel has dots or `#ephemeral` must move to the end.
 */
const own = ({ channel, topic }: Omit<Queue, "isOwn">, suffix: string, marker = ""): string => {
  const stem = `${topic}.${channel}`
  const name = `${stem}.${suffix}`
  if (!/[.#]/.test(channel) && !topic.includes("#") && name.length <= limit) return name
  const tail = `.${digest(`${topic}/${channel}`)}.${suffix}${marker}`
  return `${stem.replaceAll(ephemeral, "").slice(0, limit - tail.length)}${tail}`
}

/**
 * Returns the queue of copies that wait for their retry. The retry queue of an ephemeral queue is ephemeral too:
 * otherwise its copies would stay after the queue has ended.
 */
export const retry = (queue: Queue): Queue => ({
  topic: own(queue, "retry", isEphemeral(queue) ? ephemeral : ""),
  channel: queue.channel,
  isOwn: true
})

/** An ephemeral queue ends with its last consumer, and so do its messages. https://nsq.io/overview/design.html */
const isEphemeral = ({ channel, topic }: Queue): boolean => topic.endsWith(ephemeral) || channel.endsWith(ephemeral)

/** Parses a queue's name into topic and channel, or returns why nsqd would refuse it. */
export const parse = (name: string, defaultChannel: string): Queue | Refused => {
  if (name.endsWith(".dlq")) {
    const origin = parse(name.slice(0, -".dlq".length), defaultChannel)
    // A dead letter outlives its queue, so its topic is never ephemeral.
    return isRefused(origin) ? origin : { topic: own(origin, "dlq"), channel: ownChannel, isOwn: true }
  }
  const [topic = "", channel = defaultChannel, ...rest] = name.split("/")
  if (rest.length > 0) return refuse(`${JSON.stringify(name)} has more than one slash`)
  if (!isLegal(topic)) return refuse(`${JSON.stringify(topic)} is not a valid topic name`)
  return isLegal(channel) ? new Named(topic, channel) : refuse(`${JSON.stringify(channel)} is not a valid channel name`)
}

/** Whether two names are the same queue. */
export const isSame = (one: string, other: string, defaultChannel: string): boolean => {
  const [first, second] = [parse(one, defaultChannel), parse(other, defaultChannel)]
  return !isRefused(first) && !isRefused(second) && toText(first) === toText(second)
}

/** Returns the names by which programs call a channel; none for retries and for names with a digest. */
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
