import './readme.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Resource } from '../../../core/view.ts'
import { Icon } from '../shell/icons.tsx'
import { lazyComponent } from '../shell/panes.tsx'
import { onResourceChange } from '../state/live.ts'
import { linkTo } from '../state/route.ts'
import { requireConnection } from '../state/session.ts'
import { escapeInvisible, langOf } from '../words/texts.ts'

const Markdown = lazyComponent(async () => (await import('./markdown.tsx')).Markdown)

/** Maximum number of characters of a README that are shown. */
const maxShown = 100_000

export function Readme({ resource: { uri, name, mimeType } }: { readonly resource: Resource }) {
  const text = useSignal<string | undefined>(undefined)
  useEffect(() => {
    const controller = new AbortController()
    const readPage = async () => {
      try {
        const { contents } = await requireConnection().view.read(uri, { signal: controller.signal })
        const [content] = contents
        text.value = content !== undefined && 'text' in content ? content.text.slice(0, maxShown) : undefined
      } catch {
        // The user can open the README from the list, which shows the error.
      }
    }
    void readPage()
    const stop = onResourceChange(uri, () => void readPage())
    return () => {
      controller.abort()
      stop()
    }
  }, [uri])
  if (text.value === undefined) return null
  const isMarkdown = /markdown/.test(mimeType ?? '') || /\.m/i.test(name)
  return (
    <div class="readme">
      <h3>
        <Icon name="text" />{' '}
        <a href={linkTo({ uri })} lang={langOf(name)}>
          {escapeInvisible(name)}
        </a>
      </h3>
      {isMarkdown ? (
        <Markdown text={text.value} uri={uri} isInline />
      ) : (
        <pre class="readme-plain">{escapeInvisible(text.value)}</pre>
      )}
    </div>
  )
}
