import type { Icon } from '../../core/entry.ts'
import { base64Of } from '../../core/entry.ts'
import { metaKeys } from '../../core/meta.ts'
import type { Completion, ContentMetadata, Description, FilledPrompt } from '../../core/provider.ts'
import type { EmbeddedText } from '../../core/tool.ts'
import type {
  CacheHint,
  ListedArgument,
  ListedPrompt,
  Page,
  PromptContent,
  ReadResult,
  Resource,
  ResourceContent,
  ResourceTemplate,
} from '../../core/view.ts'
import { collectContent } from '../../core/view.ts'
import { escapeUnprintable, formatIsoTime, isSendableTime } from '../messages/format.ts'
import { blobStreamOf, longTextLength } from '../messages/json.ts'
import { isAtLeast, modernRevision, type Revision } from '../messages/messages.ts'

type Wire = Record<string, unknown>

/**
 * Converts a resource to its form in a protocol revision. A field is sent to revisions that have it, with a value that strict clients
 * accept: one bad date or priority makes some of them reject a whole page.
 */
export function resourceToWire(resource: Resource, revision: Revision): Wire {
  return describedResource(resource, revision, sourceTextKeys(resource))
}

function mountToWire(mount: Resource, revision: Revision): Wire {
  return describedResource(mount, revision, [])
}

function describedResource(resource: Resource, revision: Revision, untrusted: readonly string[]): Wire {
  const { uri, name, size, version } = resource
  const wire: Wire = { uri, name: escapeUnprintable(name) }
  addDescription(wire, resource, revision, resource.modified)
  if (size !== undefined && Number.isSafeInteger(size) && size >= 0) wire.size = size
  addMeta(wire, resource, version, revision, untrusted)
  return wire
}

function templateToWire(template: ResourceTemplate, revision: Revision): Wire {
  const wire: Wire = { uriTemplate: template.uriTemplate, name: escapeUnprintable(template.name) }
  addDescription(wire, template, revision, undefined)
  addMeta(wire, template, undefined, revision, isRelayed(template) ? sourceTextKeys(template) : [])
  return wire
}

/** Whether a template was relayed from another server: the texts of other templates come from the providers. */
function isRelayed({ meta }: Pick<ContentMetadata, 'meta'>): boolean {
  return meta?.[metaKeys.via] !== undefined
}

function sourceTextKeys({ title, description }: Pick<Description, 'title' | 'description'>): readonly string[] {
  if (title === undefined) return description === undefined ? noTexts : ['description']
  return description === undefined ? ['title'] : ['title', 'description']
}

const noTexts: readonly string[] = []

function addMeta(
  wire: Wire,
  { meta }: Pick<ContentMetadata, 'meta'>,
  version: string | undefined,
  revision: Revision,
  untrusted: readonly string[],
): Wire {
  if (!isAtLeast(revision, '2025-06-18')) return wire
  const all: Wire = { ...meta }
  if (version !== undefined) all[metaKeys.version] = version
  if (untrusted.length > 0) all[metaKeys.untrusted] = untrusted
  if (version !== undefined || hasMembers(all)) wire._meta = all
  return wire
}

function hasMembers(value: Wire): boolean {
  for (const _ in value) return true
  return false
}

export function embeddedToWire({ uri, mimeType, text, modified, ...facts }: EmbeddedText, revision: Revision): Wire {
  const { annotations } = addDescription({}, facts, revision, modified)
  return {
    type: 'resource',
    resource: { uri, ...(isMimeType(mimeType) ? { mimeType } : {}), text: text.toWellFormed() },
    ...(annotations === undefined ? {} : { annotations }),
  }
}

export function resourcesToWire(page: Page<Resource>, revision: Revision, mounts?: readonly Resource[]): Wire {
  const fields = pageFields(page, revision)
  const meta = mounts && { [metaKeys.mounts]: mounts.map((mount) => mountToWire(mount, modernRevision)) }
  return {
    resources: page.items.map((resource) => resourceToWire(resource, revision)),
    ...fields,
    ...(meta && { _meta: { ...meta, ...(fields._meta as Wire | undefined) } }),
  }
}

export function templatesToWire(page: Page<ResourceTemplate>, revision: Revision): Wire {
  return {
    resourceTemplates: page.items.map((template) => templateToWire(template, revision)),
    ...pageFields(page, revision),
  }
}

/**
 * Converts the contents of a read. Reads streams to their end first, unless the caller `streams` a single content.
 *
 * @param turn Waits for the turn in which a large content may be written.
 */
export async function readToWire(
  result: ReadResult,
  revision: Revision,
  turn: () => Promise<void> = async () => {},
  streams = false,
): Promise<Wire> {
  const contents: Wire[] = []
  const inPieces = streams && result.contents.length === 1
  // One content after the other: a stream is collected in memory.
  for (const content of result.contents)
    contents.push(contentToWire(inPieces ? content : await collectContent(content), revision, inPieces))
  // The message is formatted as JSON next, which blocks other requests meanwhile.
  if (contents.some(({ text, blob }) => String(text ?? blob).length > longTextLength)) await turn()
  return { contents, ...cacheHintFields(result.cache, revision) }
}

/** Size from which bytes are encoded in pieces while they are sent, in bytes. */
const longBytes = 64 * 1024

async function* onePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

export function promptsToWire(page: Page<ListedPrompt>, revision: Revision): Wire {
  return {
    prompts: page.items.map(({ name, arguments: declared, ...facts }) => ({
      name: escapeUnprintable(name),
      ...addDescription({}, facts, revision, undefined),
      ...(declared === undefined ? {} : { arguments: declared.map((argument) => argumentToWire(argument, revision)) }),
      ...addMeta({}, facts, undefined, revision, sourceTextKeys(facts)),
    })),
    ...pageFields(page, revision),
  }
}

function argumentToWire({ name, title, description, required }: ListedArgument, revision: Revision): Wire {
  return {
    name: escapeUnprintable(name),
    ...(title !== undefined && isAtLeast(revision, '2025-06-18') ? { title: escapeUnprintable(title) } : {}),
    ...(description === undefined ? {} : { description: description.toWellFormed() }),
    ...(required === undefined ? {} : { required }),
  }
}

/** Converts a prompt with its arguments filled in: texts unchanged, resources as embedded resources. */
export async function promptToWire(prompt: FilledPrompt<PromptContent>, revision: Revision): Promise<Wire> {
  const messages: Wire[] = []
  for (const { role, content } of prompt.messages)
    messages.push({ role, content: await promptContentToWire(content, revision) })
  return {
    ...(prompt.description === undefined ? {} : { description: prompt.description.toWellFormed() }),
    messages,
    ...addMeta({}, {}, undefined, revision, prompt.description === undefined ? noTexts : ['description']),
  }
}

/** Converts a content of a prompt: an image or a sound becomes a block of its own kind, or a resource if the revision has no such block. */
async function promptContentToWire(content: PromptContent, revision: Revision): Promise<Wire> {
  if ('text' in content) return { type: 'text', text: content.text.toWellFormed() }
  if ('resource' in content) {
    const resource = await collectContent(content.resource)
    const type = 'text' in resource ? undefined : mediaTypeOf(resource.mimeType, revision)
    if ('text' in resource || type === undefined || resource.mimeType === undefined)
      return { type: 'resource', resource: contentToWire(resource, revision) }
    return { type, data: base64Of(resource.bytes), mimeType: resource.mimeType }
  }
  if ('link' in content) {
    if (isAtLeast(revision, '2025-06-18')) return { type: 'resource_link', ...resourceToWire(content.link, revision) }
    return { type: 'text', text: content.link.uri }
  }
  const { mimeType } = content
  const type = mediaTypeOf(mimeType, revision) ?? (mimeType.startsWith('audio/') ? undefined : 'image')
  // Older revisions have no sounds.
  if (type === undefined) return { type: 'text', text: `[${mimeType}]` }
  return { type, data: base64Of(content.bytes), mimeType }
}

/** Returns the type of a content block for an image or a sound, if the revision has one. */
function mediaTypeOf(mimeType: string | undefined, revision: Revision): 'image' | 'audio' | undefined {
  if (!isMimeType(mimeType)) return undefined
  if (/^image\//i.test(mimeType)) return 'image'
  return /^audio\//i.test(mimeType) && isAtLeast(revision, '2025-03-26') ? 'audio' : undefined
}

export function completionToWire({ values, total, hasMore }: Completion): Wire {
  return {
    completion: {
      values: values.slice(0, 100).map((value) => value.toWellFormed()),
      ...(total === undefined ? {} : { total }),
      ...(hasMore === undefined ? {} : { hasMore }),
    },
  }
}

/** Converts a content. A stream and, `inPieces`, many bytes are left to the caller, as a {@link BlobStream}. */
function contentToWire(content: ResourceContent, revision: Revision, inPieces = false): Wire {
  // Only the pages of this revision's specification show a name and a title, though its schema does not contain them.
  const isTitled = revision === '2025-06-18'
  const wire: Wire = { uri: content.uri }
  if (isTitled && content.name !== undefined) wire.name = escapeUnprintable(content.name)
  if (isTitled && content.title !== undefined) wire.title = escapeUnprintable(content.title)
  if (isMimeType(content.mimeType)) wire.mimeType = content.mimeType
  if ('text' in content) wire.text = content.text.toWellFormed()
  else if ('stream' in content) wire.blob = blobStreamOf(content)
  else if (inPieces && content.bytes.length >= longBytes)
    wire.blob = { ...blobStreamOf({ stream: onePiece(content.bytes), length: content.bytes.length }), isInMemory: true }
  else wire.blob = base64Of(content.bytes)
  return addMeta(wire, content, content.version, revision, isTitled ? sourceTextKeys(content) : noTexts)
}

export function pageFields(page: Page<unknown>, revision: Revision): Wire {
  return {
    ...(page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor }),
    ...cacheHintFields(page.cache, revision),
    ...unavailableMountFields(page),
  }
}

/** Names the mounts that are missing from a list because they did not answer. */
export function unavailableMountFields({ unavailable }: Pick<Page<unknown>, 'unavailable'>): Wire {
  return unavailable === undefined ? {} : { _meta: { [metaKeys.unavailable]: unavailable } }
}

export function cacheHintFields(hint: CacheHint, revision: Revision): Wire {
  if (revision !== modernRevision) return {}
  const ttlMs = Number.isFinite(hint.ttlMs) ? Math.max(0, Math.floor(hint.ttlMs)) : 0
  return { ttlMs, cacheScope: hint.scope === 'public' ? 'public' : 'private' }
}

/** Adds the members of a description to `wire`. It is called for every entry of a long list, so it creates no other object. */
function addDescription(wire: Wire, facts: Description, revision: Revision, modified: number | undefined): Wire {
  const hasTitle = isAtLeast(revision, '2025-06-18')
  const { title, description, mimeType: type, audience, priority, icons } = facts
  if (title !== undefined && hasTitle) wire.title = escapeUnprintable(title)
  if (description !== undefined) wire.description = description.toWellFormed()
  if (isMimeType(type)) wire.mimeType = type
  const annotations: Wire = {}
  const roles = audience?.filter((role) => role === 'user' || role === 'assistant')
  if (roles !== undefined && roles.length > 0) annotations.audience = roles
  if (priority !== undefined && priority >= 0 && priority <= 1) annotations.priority = priority
  if (hasTitle && isSendableTime(modified)) annotations.lastModified = formatIsoTime(modified)
  if (hasMembers(annotations)) wire.annotations = annotations
  const visibleIcons = icons === undefined || !isAtLeast(revision, '2025-11-25') ? [] : loadableIcons(icons)
  if (visibleIcons.length > 0) wire.icons = visibleIcons
  return wire
}

export function loadableIcons(icons: readonly Icon[]): readonly Icon[] {
  return icons.filter(({ src }) => /^(https:|data:image\/)/.test(src))
}

/** A media type of RFC 6838, with parameters (RFC 9110, section 8.3); `format=A::B` of the first draft is accepted too. */
const mimeType =
  /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(?:[ \t]*;[ \t]*[\w!#$&'*+.^`|~-]+=(?:[\w!#$&'*+.^`|~:-]+|"[^"\\\r\n]*"))*$/

export function isMimeType(type: string | undefined): type is string {
  return type !== undefined && type.length <= 255 && mimeType.test(type)
}
