import { CLIENT_CAPABILITIES_META_KEY, MissingRequiredClientCapabilityError } from '@modelcontextprotocol/server'
import type { ExtraMethod } from '../src/server/bind.ts'

/**
 * What the scenarios on lifecycle and completion ask for beside resources: a prompt with an argument to complete, and
 * the tools that show how the server treats capabilities, streams and logs. They say nothing about tools or prompts.
 */
export const diagnostics: Readonly<Record<string, ExtraMethod>> = {
  'tools/list': async () => ({
    tools: tools.map((name) => ({ name, description: 'For the suite.', inputSchema: { type: 'object' } })),
  }),

  'tools/call': async ({ name }, { mcpReq }) => {
    const envelope: Readonly<Record<string, unknown>> = { ...mcpReq.envelope }
    const declared = envelope[CLIENT_CAPABILITIES_META_KEY]
    const samples = typeof declared === 'object' && declared !== null && 'sampling' in declared
    if (name === 'test_missing_capability' && !samples)
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } })
    // The SDK keeps the message back from a client that did not ask for logs.
    if (name === 'test_logging_tool') await mcpReq.log('info', 'a line of the log')
    return { content: [{ type: 'text', text: `${String(name)} was called` }] }
  },

  'prompts/list': async () => ({
    prompts: [{ name: 'test_prompt_with_arguments', description: 'For the suite.', arguments: [{ name: 'arg1' }] }],
  }),

  'prompts/get': async (params) => {
    const { arg1 = '' } = (params.arguments ?? {}) as { readonly arg1?: string }
    return { messages: [{ role: 'user', content: { type: 'text', text: `The argument is ${arg1}.` } }] }
  },

  'completion/complete': async ({ argument }) => {
    const { value = '' } = (argument ?? {}) as { readonly value?: string }
    const values = ['testValue1', 'testValue2'].filter((known) => known.startsWith(value))
    return { completion: { values, total: values.length, hasMore: false } }
  },
}

const tools = ['test_missing_capability', 'test_streaming_elicitation', 'test_logging_tool']
