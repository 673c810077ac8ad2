import { useEffect, useRef } from 'preact/hooks'
import { basket } from '../basket/picked.ts'
import { basketPlan } from '../basket/store.ts'
import { Button, SearchInput, Select, type SelectOption, ServerText } from '../shell/fields.tsx'
import { Icon, Mark } from '../shell/icons.tsx'
import { shownDialog } from '../shell/keys.ts'
import { frontPane } from '../shell/panes.tsx'
import { t } from '../shell/words.ts'
import { addRecentSearch, type Theme, theme } from '../state/remembered.ts'
import { linkTo, navigate, previewedHit, type Route, type RouteChange, route } from '../state/route.ts'
import { liveness, requireConnection } from '../state/session.ts'
import { formatNumber, type Language, language } from '../words/texts.ts'

export function Header() {
  const { server } = requireConnection()
  return (
    <header class="top">
      <a
        class="top-mark"
        href={linkTo({ view: undefined, uri: undefined, filter: undefined })}
        aria-label={t('start')}
        title={t('start')}
      >
        <Mark size={22} />
      </a>
      <ServerText as="h1" class="top-name one-line" text={server.title ?? server.name} />
      <Views />
      <SearchField />
      {liveness.value === 'lost' ? (
        <span class="top-lost" title={t('lost')}>
          <Icon name="warn" />
          <span class="top-lost-word">{t('lostShort')}</span>
          <Button name={t('tryNow')} onClick={() => requireConnection().changes?.retry()} />
        </span>
      ) : null}
      <BasketButton />
      <Settings />
      <HelpButton />
    </header>
  )
}

const views = ['tree', 'list', 'search', 'templates'] as const satisfies readonly Route['view'][]

function Views() {
  const { view } = route.value
  // A narrow window shows one pane at a time. The start page is one of the panes, so it needs a link.
  const { front } = frontPane()
  const isNarrow = front !== undefined
  const elsewhere = isNarrow ? { uri: undefined, basket: undefined } : {}
  const link = (name: string, change: RouteChange, isCurrent: boolean) => (
    <a
      key={name}
      href={linkTo({ ...change, ...elsewhere })}
      aria-current={isCurrent && front !== 'right' ? 'page' : undefined}
    >
      {name}
    </a>
  )
  return (
    <nav class="views" aria-label={t('views')}>
      {isNarrow ? link(t('startShort'), { view: undefined, filter: undefined }, view === undefined) : null}
      {views.map((one) =>
        link(nameOfView(one), { view: one }, one === view || (one === 'tree' && view === undefined && !isNarrow)),
      )}
    </nav>
  )
}

/** If the server can have prompts, the view `templates` shows them first, and is named after them. */
function nameOfView(view: (typeof views)[number]): string {
  return t(view === 'templates' && requireConnection().view.prompts !== undefined ? 'prompts' : view)
}

export function SearchField() {
  const field = useRef<HTMLInputElement>(null)
  /** The last query typed here. A different query in the permalink came from a link or from the history. */
  const typed = useRef('')
  const { q = '' } = route.value
  useEffect(() => {
    // The user may have typed more since the render, so use the current permalink.
    const { q: now = '' } = route.value
    if (field.current === null || now === typed.current) return
    typed.current = now
    field.current.value = now
  }, [q])
  const search = (text: string) => {
    const token = text.trim()
    typed.current = token
    const { view, uri } = route.value
    if (view !== 'search' && token === '') return
    // The previous preview stays until there is a hit.
    if (uri !== undefined) previewedHit.value = uri
    navigate({ view: 'search', q: token === '' ? undefined : token, uri: undefined }, { replace: view === 'search' })
  }
  return (
    <search class="top-search">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const value = field.current?.value ?? ''
          search(value)
          addRecentSearch(value)
        }}
      >
        <SearchInput
          id="search"
          field={field}
          name={t('searchFor')}
          placeholder={t('searchHint')}
          onText={search}
          onKey={(event) => {
            if (event.key !== 'ArrowDown') return
            const first = document.querySelector<HTMLElement>('.find .hit-link, .find .recent-query')
            if (first === null) return
            event.preventDefault()
            first.focus()
          }}
        />
      </form>
    </search>
  )
}

export function BasketButton() {
  const count = basket.value.length
  const { tokens, over } = basketPlan.value
  const isOpen = route.value.basket === '1'
  const label = tokens === 0 ? t('basketCount', { count }) : t('basketCounted', { count, tokens })
  return (
    <button
      type="button"
      class="button top-basket"
      aria-pressed={isOpen}
      title={label}
      onClick={() => navigate({ basket: isOpen ? undefined : '1' })}
    >
      <Icon name="basket" />
      <span class="unseen">{t('basket')}</span>
      <span class="top-basket-count">{formatNumber(count)}</span>
      {count > 0 && tokens > 0 ? (
        <span class={`top-basket-tokens ${over > 0 ? 'bad' : 'quiet'}`}>{t('counted', { tokens })}</span>
      ) : null}
    </button>
  )
}

const themes = ['system', 'light', 'dark'] as const satisfies readonly Theme[]
const languages: Readonly<Record<Language, string>> = { en: 'English', ja: '日本語' }

function Settings() {
  const menu = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      if (event.target instanceof Node && menu.current?.contains(event.target) === false) menu.current.open = false
    }
    addEventListener('pointerdown', close)
    addEventListener('focusin', close)
    return () => {
      removeEventListener('pointerdown', close)
      removeEventListener('focusin', close)
    }
  }, [])
  return (
    <details
      class="menu"
      ref={menu}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || menu.current === null) return
        menu.current.open = false
        menu.current.querySelector('summary')?.focus()
      }}
    >
      <summary class="button button-quiet" aria-label={t('settings')} title={t('settings')}>
        <Icon name="gear" />
      </summary>
      <div class="menu-body">
        <Select
          label={t('language')}
          options={(['en', 'ja'] as const).map((code): SelectOption<'en' | 'ja'> => [code, languages[code], code])}
          value={language.value}
          onChoose={(code) => {
            language.value = code
          }}
        />
        <Select
          label={t('theme')}
          options={themes.map((one): SelectOption<Theme> => [one, t(one)])}
          value={theme.value}
          onChoose={(one) => {
            theme.value = one
          }}
        />
      </div>
    </details>
  )
}

function HelpButton() {
  return (
    <Button
      name={t('help')}
      sign="?"
      class="button-quiet top-help"
      aria-haspopup="dialog"
      onClick={() => {
        shownDialog.value = 'help'
      }}
    />
  )
}
