/**
 * A topic: it copies each message to all of its channels.
 *
 * | rule | source in https://github.com/nsqio/nsq/tree/v1.3.0/nsqd |
 * | --- | --- |
 * | messages wait in a topic without channels, or that is paused; the first channel gets them all | `messagePump` in topic.go |
 * | a deferral begins when a channel gets the message | `PutMessageDeferred` in channel.go |
 * | with `--mem-queue-size=0`, a deferral holds only if a channel can take the message at once; before 1.3.0 never | `put` in topic.go, https://github.com/nsqio/nsq/pull/1376 |
 * | further channels get copies with the same id, time and body | `messagePump` in topic.go |
 * | a started nsqd moves what its topics still have to their channels | `Start` in topic.go |
 * | an ephemeral topic is deleted with its last channel | `DeleteExistingChannel` in topic.go |
 */
import * as Backlog from "./Backlog.ts"
import * as Channel from "./Channel.ts"
import type * as Facts from "./Facts.ts"
import * as Messages from "./Messages.ts"

export interface Topic {
  readonly name: string
  readonly put: (body: Buffer, deferred: number, clientId: string | undefined) => void
  /** Returns a channel, which is made if it is missing. */
  readonly channel: (name: string) => Channel.Channel
  readonly existing: (name: string) => Channel.Channel | undefined
  readonly channels: () => ReadonlyArray<Channel.Channel>
  readonly removeChannel: (name: string) => void
  readonly pause: (isPaused: boolean) => void
  readonly empty: () => void
  /** Removes its channels with their messages, and closes their clients or forgets them. */
  readonly remove: (clients: "close" | "forget") => void
  readonly shutDown: (isOrderly: boolean) => void
  /** Begins again: what it has read again goes to its channels. */
  readonly start: () => void
  /** Returns the messages that are in no channel yet. */
  readonly waiting: () => ReadonlyArray<Messages.Message>
  readonly statistics: () => {
    readonly depth: number
    readonly onDisk: number
    readonly messages: number
    readonly isPaused: boolean
  }
}

export interface Env extends Channel.Env {
  readonly nsqd: string
  /** Whether a deferred message may reach a channel without memory for it. */
  readonly passesDeferred: boolean
}

const isEphemeral = (name: string): boolean => name.endsWith("#ephemeral")

/** A topic without channels. `abandoned` is called when its last channel is gone. */
// Long, because its functions share the messages of one topic.
export const make = (env: Env, name: string, abandoned: () => void): Topic => {
  const { flags, host, nsqd, passesDeferred, report } = env
  const place = { nsqd, topic: name, channel: undefined }
  const messages = Messages.make(host, env.copies)
  const channels = new Map<string, Channel.Channel>()
  let count = 0
  let isPaused = false

  const gone = (message: Messages.Message, why: Facts.End): void =>
    report({ _tag: "Gone", place, message, delivery: undefined, why })
  const backlog = Backlog.make(host, flags, isEphemeral(name), (message) => gone(message, "forgotten"))

  const stored = (message: Messages.Message, of: Facts.Place, clientId?: string): void =>
    report({ _tag: "Stored", place: of, message, due: host.now() + message.deferred, clientId })

  /** The copy that nsqd reads again: it has forgotten that its channels have it. */
  const revive = (message: Messages.Message): Messages.Message => {
    const again = messages.copy(message)
    stored(again, place)
    return again
  }

  const isOpen = (): boolean => channels.size > 0 && !isPaused

  const spread = (message: Messages.Message): void => {
    let isFirst = true
    for (const channel of channels.values()) {
      const copy = isFirst ? message : messages.copy(message)
      if (!isFirst) stored(copy, { ...place, channel: channel.name })
      isFirst = false
      channel.put(copy)
    }
  }

  const pump = (): void => {
    while (isOpen() && backlog.size() > 0) spread(backlog.take()!)
  }

  const removeChannel = (channel: string): void => {
    channels.get(channel)?.remove("close")
    if (channels.delete(channel) && channels.size === 0 && isEphemeral(name)) abandoned()
  }

  return {
    name,
    put: (body, deferred, clientId) => {
      const message = messages.make(body, deferred)
      count++
      stored(message, place, clientId)
      if (deferred > 0 && flags.memQueueSize === 0 && passesDeferred && isOpen()) return spread(message)
      backlog.put(message)
      pump()
    },
    channel: (channel) => {
      const found = channels.get(channel)
      if (found !== undefined) return found
      const made = Channel.make(env, { ...place, channel }, () => {
        if (isEphemeral(channel)) removeChannel(channel)
      })
      channels.set(channel, made)
      pump()
      return made
    },
    existing: (channel) => channels.get(channel),
    channels: () => [...channels.values()],
    removeChannel,
    pause: (wanted) => {
      isPaused = wanted
      pump()
    },
    empty: () => {
      for (const message of backlog.clear()) gone(message, "emptied")
    },
    remove: (clients) => {
      for (const channel of channels.values()) channel.remove(clients)
      channels.clear()
      for (const message of backlog.clear()) gone(message, "deleted")
    },
    shutDown: (isOrderly) => {
      if (isOrderly) backlog.flush([])
      else for (const message of backlog.kill(revive)) gone(message, "forgotten")
      for (const channel of channels.values()) {
        channel.shutDown(isOrderly)
        if (isEphemeral(channel.name)) removeChannel(channel.name)
      }
    },
    start: pump,
    waiting: backlog.all,
    statistics: () => ({ depth: backlog.size(), onDisk: backlog.onDisk(), messages: count, isPaused })
  }
}
