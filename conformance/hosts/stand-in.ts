import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** A tool call that the fake model requests from a host. */
export interface ToolCall {
  /** The end of the tool's name, because hosts prefix it with the name of the server. */
  readonly name: string
  readonly arguments: object
  /** Whether an answer is accepted. The call is repeated until then, a limited number of times. By default any answer is accepted. */
  readonly isEnough?: (output: string) => boolean
}

/**
 * A fake model on a free port of this machine. It answers each request of a host with the next planned call, and then with a message. It
 * stores the outputs of the tools that the host reports.
 */
export interface StandIn {
  readonly url: string
  /** Returns the names of the tools that the last request offered. */
  offered(): readonly string[]
  /** Returns the last output of each planned call, in order. */
  outputs(): readonly string[]
  /** Returns the requests with which tasks began, as JSON. */
  begun(): readonly string[]
  close(): void
}

/** The API between a host and its model. */
export interface Dialect {
  /** Returns the names of the tools that a request offers. None: the host requests something else, such as a title. */
  toolsIn(request: Json): readonly string[]
  /** Returns the outputs of all calls so far. */
  outputsIn(request: Json): readonly string[]
  /** Returns the events of an answer. */
  answer(
    call: { readonly name: string; readonly arguments: object; readonly id: string } | undefined,
  ): readonly string[]
}

export type Json = Readonly<Record<string, unknown>>

/** Maximum number of repeats of a call, and the delay before each, in milliseconds. */
const maxRepeats = 40
const repeatIntervalMs = 250

export async function startStandIn(dialect: Dialect, plan: readonly ToolCall[]): Promise<StandIn> {
  let offered: readonly string[] = []
  let all: readonly string[] = []
  const begun: string[] = []
  /** For each output, the index of the planned call that it answers. */
  let numbers: number[] = []
  const server = createServer(async (request, response) => {
    const body = await textOf(request)
    if (request.method !== 'POST') return void response.writeHead(404).end()
    const json = JSON.parse(body) as Json
    const tools = dialect.toolsIn(json)
    let call: ToolCall | undefined
    if (tools.length > 0) {
      offered = tools
      all = dialect.outputsIn(json)
      if (all.length === 0) begun.push(body)
      const at = await nextOf(plan, all, numbers)
      numbers = [...numbers.slice(0, all.length), at]
      call = plan[at]
    }
    const name = tools.find((tool) => tool.endsWith(call?.name ?? '')) ?? call?.name ?? ''
    const id = `call_${all.length}`
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.end(dialect.answer(call === undefined ? undefined : { name, arguments: call.arguments, id }).join(''))
    return undefined
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    offered: () => offered,
    outputs: () => plan.map((_, call) => all[numbers.slice(0, all.length).lastIndexOf(call)] ?? ''),
    begun: () => begun,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Returns the index of the call to make: the last one again if its answer is not accepted, else the next one. */
async function nextOf(plan: readonly ToolCall[], all: readonly string[], numbers: readonly number[]): Promise<number> {
  const last = all.length === 0 ? undefined : numbers[all.length - 1]
  if (last === undefined) return 0
  const isEnough = plan[last]?.isEnough ?? (() => true)
  const repeats = numbers.slice(0, all.length).filter((number) => number === last).length
  if (isEnough(all.at(-1) ?? '') || repeats > maxRepeats) return last + 1
  await pause(repeatIntervalMs)
  return last
}

async function textOf(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  return body
}

const event = (value: Json, type?: string) =>
  `${type === undefined ? '' : `event: ${type}\n`}data: ${JSON.stringify(value)}\n\n`

const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as readonly Json[]) : [])

/** Returns a tool's output as text. Any other value than a string becomes JSON. */
const outputText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** The Responses API, which Codex uses. */
export const responses: Dialect = {
  toolsIn: ({ tools }) =>
    listOf(tools).flatMap((tool) => listOf(tool.tools ?? [tool]).map(({ name, type }) => String(name ?? type))),
  outputsIn: ({ input }) =>
    listOf(input).flatMap(({ type, output }) => (type === 'function_call_output' ? [outputText(output)] : [])),
  answer: (call) => {
    const item =
      call === undefined
        ? { type: 'message', id: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] }
        : {
            ...{ type: 'function_call', id: `item_${call.id}`, call_id: call.id, name: call.name },
            arguments: JSON.stringify(call.arguments),
          }
    const usage = { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null }
    return [
      { type: 'response.created', response: { id: 'response' } },
      { type: 'response.output_item.done', item },
      { type: 'response.completed', response: { id: 'response', usage: { ...usage, total_tokens: 2 } } },
    ].map((value) => event(value, value.type))
  },
}

/** The Chat Completions API, which opencode uses with OpenAI-compatible providers. */
export const chatCompletions: Dialect = {
  toolsIn: ({ tools }) => listOf(tools).map((tool) => String((tool.function as Json | undefined)?.name)),
  outputsIn: ({ messages }) =>
    listOf(messages).flatMap(({ role, content }) => (role === 'tool' ? [outputText(content)] : [])),
  answer: (call) => {
    const chunk = (delta: Json, reason: string | null) => ({
      ...{ id: 'chunk', object: 'chat.completion.chunk', created: 1, model: 'stand-in' },
      choices: [{ index: 0, delta, finish_reason: reason }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    })
    const said =
      call === undefined
        ? { role: 'assistant', content: 'Done.' }
        : {
            role: 'assistant',
            tool_calls: [
              {
                ...{ index: 0, id: call.id, type: 'function' },
                function: { name: call.name, arguments: JSON.stringify(call.arguments) },
              },
            ],
          }
    const reason = call === undefined ? 'stop' : 'tool_calls'
    return [event(chunk(said, null)), event(chunk({}, reason)), 'data: [DONE]\n\n']
  },
}

/** The Gemini API, which Gemini CLI uses. */
export const generateContent: Dialect = {
  toolsIn: ({ tools }) =>
    listOf(tools).flatMap((tool) => listOf(tool.functionDeclarations).map(({ name }) => String(name))),
  outputsIn: ({ contents }) =>
    listOf(contents)
      .flatMap(({ parts }) => listOf(parts))
      .flatMap(({ functionResponse }) =>
        functionResponse === undefined ? [] : [outputText((functionResponse as Json).response)],
      ),
  answer: (call) => {
    const part = call === undefined ? { text: 'Done.' } : { functionCall: { name: call.name, args: call.arguments } }
    return [
      event({
        candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      }),
    ]
  },
}
