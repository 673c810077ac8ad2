import * as z from '../schema/builder.ts'
import { globs, text } from '../schema/fields.ts'
import { refusal } from '../schema/refusals.ts'

const names = z.union([text, z.array(text).min(1)], {
  error: refusal(
    'This is not the name of a client.',
    'Write one such as "Zed", or an array of them; "*" stands for anything.',
  ),
})

const profile = z.strictObject({
  name: names.describe(
    'What the client calls itself, such as "Zed" or "cursor-*": "*" stands for anything, capitals make no difference.',
  ),
  version: names.exactOptional().describe('Its version, likewise: "1.*". By default any.'),
  tools: z
    .union([z.boolean(), z.literal('chatgpt')], {
      error: refusal('This does not say which tools a client gets.', 'Write true, false or "chatgpt".'),
    })
    .exactOptional()
    .describe(
      'Whether it is given the tools that read resources; "chatgpt": the tools search and fetch alone. By default as `clients.tools` says.',
    ),
  list: z
    .strictObject({
      mounts: z
        .array(text)
        .min(1)
        .exactOptional()
        .describe('The addresses of the mounts that it is shown. By default all.'),
      match: globs.exactOptional().describe('The paths that it is shown. By default all.'),
      most: z
        .union([z.int().min(1), z.literal('all')], {
          error: refusal('This is not a number of resources.', 'Write a whole number, at least 1, or "all".'),
        })
        .exactOptional()
        .describe(
          'How many resources it is listed at most, the most important ones first; "all" lifts the limit that a host is known to have. By default as the host takes, else all.',
        ),
    })
    .exactOptional()
    .describe(
      'What it is shown where things are listed, browsed and completed. It is no access rule: by its URI it can read the rest too.',
    ),
})

export const clients = z.strictObject({
  tools: z
    .enum(['auto', 'on', 'off', 'chatgpt'])
    .exactOptional()
    .describe(
      'Who is given the tools list_resources, browse_directory, read_resource, search_resources, browse and assemble_context: "on", everybody; "off", nobody but the explorer; "auto", every client but those in which a model is known to list, read and search resources by itself (ChatGPT gets search and fetch besides); "chatgpt": everybody is given the tools search and fetch instead, as ChatGPT connectors want them. By default "auto".',
    ),
  profiles: z
    .array(profile)
    .exactOptional()
    .describe('What some clients are given, by what they call themselves. The first that matches counts.'),
})

export type ClientsConfig = z.output<typeof clients>
