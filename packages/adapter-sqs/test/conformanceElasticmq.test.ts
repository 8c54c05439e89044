import { Unavailable } from "@requeue/brokers"
import { test } from "vitest"
import { register } from "./suite.ts"

try {
  await register("elasticmq", 700)
} catch (cause) {
  if (!(cause instanceof Unavailable)) throw cause
  test("conformance on ElasticMQ", ({ skip }) => skip(cause.message))
}
