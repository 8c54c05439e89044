/** The places where suites run. Each opens when the first suite needs it, and is then shared. */
import type { Pinning } from "./pinning.ts"
import * as NsqVenue from "./nsqVenue.ts"
import * as PostgresVenue from "./postgresVenue.ts"
import * as RabbitMqVenue from "./rabbitmqVenue.ts"
import * as RedisVenue from "./redisVenue.ts"
import * as SqsVenue from "./sqsVenue.ts"
import type { Suite, Venue, VenueName } from "./Suite.ts"

type Open = (pinning: Pinning | undefined, say: (line: string) => void) => Promise<Venue>

const kinds: Readonly<Record<VenueName, Open>> = {
  rabbitmq: RabbitMqVenue.open,
  nsq: NsqVenue.open,
  sqs: SqsVenue.open,
  redis: RedisVenue.open,
  postgres: PostgresVenue.open
}

export interface Venues extends AsyncDisposable {
  readonly of: (suite: Suite) => Promise<Venue | undefined>
}

export const make = (pinning: Pinning | undefined, say: (line: string) => void): Venues => {
  const opened = new Map<VenueName, Promise<Venue>>()
  return {
    of: async ({ venue }) => {
      if (venue === undefined) return undefined
      const known = opened.get(venue) ?? kinds[venue](pinning, say)
      opened.set(venue, known)
      return known
    },
    [Symbol.asyncDispose]: async () => {
      for (const venue of await Promise.all(opened.values())) await venue.close()
    }
  }
}
