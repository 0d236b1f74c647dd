// Has the vendor's own client carry on a conversation: node --input-type=module - URL KEY CONVERSATION < sdk.mjs
// It runs in the folder that has the client's package, since that is where modules are looked for. CONVERSATION is JSON:
// the first request, and the user's messages behind each answer. Prints the last answer's text.
import Anthropic from "@anthropic-ai/sdk";

const [baseURL, apiKey, conversation] = process.argv.slice(2);
const { request, answers } = JSON.parse(conversation);
// It would send the key as a bearer.
const defaultHeaders = { "x-api-key": apiKey };
const client = new Anthropic({ baseURL, apiKey: null, defaultHeaders, maxRetries: 0 });
const { stream: _, ...body } = request;

let message;
for (const answer of [...answers, undefined]) {
  message = await client.messages.stream(body).finalMessage();
  body.messages = [...body.messages, { role: "assistant", content: message.content }, answer];
}
console.log(message.content.map((block) => block.text ?? "").join(""));
