import { adapter as nsq } from "@requeue/adapter-nsq"
import { adapter as postgres } from "@requeue/adapter-postgres"
import { adapter as rabbitmq } from "@requeue/adapter-rabbitmq"
import { adapter as sqlite } from "@requeue/adapter-sqlite"
import { adapter as sqs } from "@requeue/adapter-sqs"

export const adapters = [nsq, postgres, rabbitmq, sqlite, sqs]
