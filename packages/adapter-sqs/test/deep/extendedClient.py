"""AWS' own extended client: sends a body, or receives one and prints it. Arguments come as JSON."""
import json
import sys

import boto3
import sqs_extended_client  # noqa: F401  It adds the large payloads to boto3's client.

asked = json.loads(sys.argv[1])
settings = {
    "endpoint_url": asked["endpoint"],
    "region_name": "eu-west-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}
sqs = boto3.client("sqs", **settings)
sqs.large_payload_support = asked["bucket"]
sqs.use_legacy_attribute = asked["legacy"]
sqs.s3_client = boto3.client("s3", **settings)
url = sqs.get_queue_url(QueueName=asked["queue"])["QueueUrl"]

if asked["call"] == "send":
    tenant = {"tenant": {"DataType": "String", "StringValue": "a"}}
    sqs.send_message(QueueUrl=url, MessageBody=asked["body"] * asked["times"], MessageAttributes=tenant)
else:
    answer = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"], WaitTimeSeconds=5)
    message = answer["Messages"][0]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    attributes = {name: each["StringValue"] for name, each in message["MessageAttributes"].items()}
    print(json.dumps({"body": message["Body"], "attributes": attributes}))
