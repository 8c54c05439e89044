/**
 * From a queue's name to NSQ's topics and channels. Pure.
 *
 * | name | topic | channel |
 * | --- | --- | --- |
 * | `orders` | `orders` | the default channel |
 * | `orders/billing` | `orders` | `billing` |
 * | `orders/billing.dlq` | `orders.billing.dlq` | `requeue` |
 * | `orders.dlq` | `orders.<default channel>.dlq` | `requeue` |
 *
 * A queue's own topics are named after its topic and its channel, and a channel has no dots: so no two queues share one.
 */

export interface Queue {
  readonly topic: string
  readonly channel: string
  /** A topic that Requeue named, and that nobody else reads. */
  readonly isOwn: boolean
}

/** Why nsqd would refuse the name. */
export interface Refused {
  readonly detail: string
  readonly remedy: string
}

export const isRefused = (parsed: Queue | Refused): parsed is Refused => "detail" in parsed

/** The longest name of a topic or a channel. https://github.com/nsqio/nsq/blob/master/internal/protocol/names.go */
export const limit = 64

/** The channel of topics that are Requeue's own. */
const ownChannel = "requeue"

const ephemeral = "#ephemeral"

const topicPattern = /^[.a-zA-Z0-9_-]+(#ephemeral)?$/
const channelPattern = /^[a-zA-Z0-9_-]+(#ephemeral)?$/

const remedy = `Use letters, digits, ".", "_" and "-", at most ${limit} of them: topic, or topic/channel`

const refuse = (detail: string): Refused => ({ detail, remedy })

/** FNV-1a with 64 bits, for names that are too long. http://www.isthe.com/chongo/tech/comp/fnv/ */
const digest = (text: string): string => {
  let hash = 0xcbf29ce484222325n
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return hash.toString(36).padStart(13, "0")
}

/** A topic of the queue's own. What does not fit, or could be taken for another's, carries a digest. */
const own = ({ channel, topic }: Omit<Queue, "isOwn">, suffix: string, marker = ""): string => {
  const stem = `${topic}.${channel}`
  const name = `${stem}.${suffix}`
  if (!stem.includes("#") && name.length <= limit) return name
  const tail = `.${digest(`${topic}/${channel}`)}.${suffix}${marker}`
  return `${stem.replaceAll(ephemeral, "").slice(0, limit - tail.length)}${tail}`
}

/**
 * Where the copies are that wait for their retry. With an ephemeral queue it is ephemeral too: else nobody would ever
 * take them away.
 */
export const retry = (queue: Queue): Queue => ({
  topic: own(queue, "retry", isEphemeral(queue) ? ephemeral : ""),
  channel: queue.channel,
  isOwn: true
})

/** An ephemeral queue ends with its last consumer, and what it holds with it. */
export const isEphemeral = ({ channel, topic }: Queue): boolean =>
  topic.endsWith(ephemeral) || channel.endsWith(ephemeral)

/** The channel and the topic that a queue's name means, or why it means none. */
export const parse = (name: string, defaultChannel: string): Queue | Refused => {
  if (name.endsWith(".dlq")) {
    const origin = parse(name.slice(0, -".dlq".length), defaultChannel)
    // A dead letter outlives its queue, so its topic is never ephemeral.
    return isRefused(origin) ? origin : { topic: own(origin, "dlq"), channel: ownChannel, isOwn: true }
  }
  const [topic = "", channel = defaultChannel, ...rest] = name.split("/")
  if (rest.length > 0) return refuse(`${JSON.stringify(name)} has more than one slash`)
  if (topic.length > limit || !topicPattern.test(topic)) return refuse(`${JSON.stringify(topic)} is no topic's name`)
  const dot = channel.indexOf(".")
  if (dot < 0) {
    return channel.length > limit || !channelPattern.test(channel)
      ? refuse(`${JSON.stringify(channel)} is no channel's name`)
      : { topic, channel, isOwn: false }
  }
  const suffix = channel.slice(dot + 1)
  if (!/^[.a-zA-Z0-9_-]{1,24}$/.test(suffix)) return refuse(`${JSON.stringify(suffix)} is no suffix of at most 24`)
  const origin = parse(`${topic}/${channel.slice(0, dot)}`, defaultChannel)
  return isRefused(origin) ? origin : { topic: own(origin, suffix), channel: ownChannel, isOwn: true }
}
