/** The whole conformance suite of the RabbitMQ adapter in virtual time, on every topology: three minutes of a processor. */
import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { deep, others, toOptions } from "../rabbitmq/setups.ts"

for (const setup of [...deep, ...others])
  Suite.register({ describe, test, afterAll }, toOptions(setup, setup.groups === undefined))
