/** Characters from `first` to `last`, without the frequent ones: together they make the share `share` of a text. */
interface CharacterRange {
  readonly first: number
  readonly last: number
  readonly share: number
  /** Number of these characters in use; by default all. */
  readonly used?: number
}

const hiragana = (share: number): CharacterRange => ({ first: 0x3041, last: 0x3096, share })
const katakana = (share: number): CharacterRange => ({ first: 0x30a1, last: 0x30fa, share })
const ideographs = (share: number): CharacterRange => ({ first: 0x4e00, last: 0x9fff, share, used: 6500 })
const syllables = (share: number): CharacterRange => ({ first: 0xac00, last: 0xd7a3, share, used: 2350 })
const marks: readonly CharacterRange[] = [
  { first: 0xa0, last: 0xff, share: 0.002 },
  { first: 0x370, last: 0x451, share: 0.001 },
  { first: 0x2010, last: 0x206f, share: 0.01 },
  { first: 0x2070, last: 0x27bf, share: 0.01 },
  { first: 0x3000, last: 0x301f, share: 0.03 },
  { first: 0xff01, last: 0xff5e, share: 0.04 },
  { first: 0xff61, last: 0xff9f, share: 0.001 },
]

/** Logarithm of the probability of a byte above 0x7F by chance, and of an ASCII byte. */
const chance = Math.log(1 / 128) + Math.log(1 / 2)
const letterByChance = Math.log(1 / 20)
/** Logarithm of the probability that text changes between ASCII and the language, and of the probability that it does not. */
const [crossing, staying] = [Math.log(0.15), Math.log(0.85)]

function createTable(frequent: string, ranges: readonly CharacterRange[]): Float32Array {
  const table = new Float32Array(0x10000).fill(Math.log(1e-9))
  for (const { first, last, share, used = last - first + 1 } of [...marks, ...ranges])
    table.fill(Math.log(share / used), first, last + 1)
  // Zipf's law, with an offset because it overestimates the first ranks.
  const weights = Array.from(frequent, (_, rank) => 1 / (rank + 12))
  const whole = weights.reduce((sum, weight) => sum + weight, 0)
  for (const [rank, weight] of weights.entries()) table[frequent.charCodeAt(rank)] = Math.log((0.8 * weight) / whole)
  return table
}

const makers = {
  ja: () => createTable(japanese, [hiragana(0.04), katakana(0.04), ideographs(0.06)]),
  hans: () => createTable(simplified, [hiragana(1e-4), katakana(1e-4), ideographs(0.1)]),
  hant: () => createTable(traditional, [hiragana(1e-4), katakana(1e-4), ideographs(0.1)]),
  ko: () => createTable(korean, [hiragana(1e-4), katakana(1e-4), ideographs(0.01), syllables(0.04)]),
} as const

export type LikelihoodModel = keyof typeof makers
const tables = new Map<LikelihoodModel, Float32Array>()

/** The log-likelihood of random bytes, by the number of ASCII and of non-ASCII bytes. */
export function randomLikelihood(ascii: number, high: number): number {
  return high * chance + ascii * letterByChance
}

/** The log-likelihood of a text in a language: above {@link randomLikelihood} for text of the language, and below it for other text. */
export function likelihood(text: string, model: LikelihoodModel): number {
  const table = tables.get(model) ?? makers[model]()
  tables.set(model, table)
  let sum = 0
  let ascii = 0
  let inside = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) {
      ascii++
      if (inside) sum += crossing
      inside = false
    } else {
      sum += (inside ? staying : crossing) + (table[code] ?? 0)
      inside = true
    }
  }
  return sum + ascii * letterByChance
}

/**
 * The characters of Japanese, most frequent first, as counted in film subtitles and in the messages of the TypeScript compiler. The lists of
 * the other languages below were counted in the same way.
 */
const japanese =
  'のいはてたなにるをしーですまがかだっれとんこン。あうらスイトさりもルクきよラ、くそせップけタ型わパフリジえど' +
  'ロつドおめメ用言ティア使前私何ちシ彼みろや定要ポ人コじ出見レエねァ子名必バオゃマ事数ェグ行ュブモ分デ一指チャ' +
  '君ョ場間宣合カサ来女べば俺生大話キ的変無持ベソ知関思時ょ値今気ム解セウ入手ぞネ可ビ誰中最者ダ決方ず殺自戻上当' +
  '成全び追含参日効後照む力本式所部ご聞性同ニ加死期ナ会内実達能僕動ミ明呼へケ取物げ々家初理別有化対引不ハ換下待' +
  '意素ぜ違文信ズ我代付外良目年ガォ体列正ボ作連夫通修ほ設確ワ心以張悪奴金非仕検字報ぐ飾新書発ゲ問注在丈男空警許' +
  '既他先電地考度配少存構長感ツ父助黙現込件終撃識釈置起切拡止暗除静車約結戦親回装法予複失ぶ着ピ食様ぎホ教学義帰' +
  '重国緒立常ヤ機認ぁ返味愛相更残好示割調居ノ開足世計告直夜ペ象身官再命員供犯友頼表情神安逃算ゴ始次続真士未保題' +
  'ヘ査母欲番高向落得近推反状ヴ記共探削屋伝論読'

/** Chinese in simplified characters. */
const simplified =
  '的我你是不。了在有“”一用类这们为他型么个能要好到中人来，出可数那名什会使就没吗文件导或上说想明对去以时定看' +
  '法生道吧知过式她但得子很下里模和只都声性具事入将成所块回也此大还现属项正样必参表无啊符起标真须因它给怎如做已' +
  '称引天多后函问目找开字指选方自其点发达行家意请器把小解从加些当于作果应别让前谢着许实包然重走置面需值地间本错' +
  '跟快打命心分最未始该话更量之、呢员再告接认记见死析而相太变等被儿妈女先仅签修进斯添象全像情手处经听访调设少返' +
  '同才元含位公允语构部饰转哪克配关非动爱保带造与注西句编們這信觉年新换何‘次老’安算孩译特查号己爸外口并干专代' +
  '除诉头识帮谁否感常义高工候化直路喜任麼空放长尔比通素改欢晚种国车向确机电提叫内索身理误今受美哦组存扩初静输结' +
  '体杀启亲东态运试住第两括格力利断吃完合计個展缺來思拉友又默白活取持者容且拿写令学主效释失隐每望德钱离考基共马' +
  '期留环报程警您题制序边求根朋男士早段列切支录息希嗎物言伙准虑局私呀检复玩沒由日三說會总举夫嗯嘿办单刚系世源场' +
  '约步装删父条难管视显径害片气止示则消谈房服抱几终交嘛版啦黑推原哥禁教备歉神布掉例姐门尼官志库境停為至枚清笑救' +
  '抽证罗护照怕远码射战跳送乐载决整阿监够星度助束匹队严蛋建坐功十影况水卡二喝师获收察酒界供月顶串侧异批医兴海另' +
  '替色联级球反左肯枪近弟底眼奇赋待伤音操怪派火军婚搞演久继尝续母睡對围跑金绝樣案拜及托亚哈兼米光简巴迭平帝贝万' +
  '便喂混宝還и据忘张承击飞键买兰周鬼穿病节花读愿担范映英室永校棒噢忙论闭乎犯嗨司集抓兄過限時绑密随尽传站强客层'

const traditional =
  '的我你。是不了有在一們這為用他型類要個，式別來好人中會到出嗎能可或麼沒那就定案使以什名法得匯說告上и檔數時去' +
  '對子只想看無參性過必模所入吧組道但生知指稱她須下很都宣屬回事此還具也么樣算大成將解和新目項已多啊方設函因真現' +
  '開運琌天取其如怎選做點找標元發給起考自值請作讓把之從ぃ行件建小謝含正未當相叫家常著快些意該字於位前面走間地而' +
  '錯非需包變最存果然引傳您跟話後增重裡員許實、心明私同才更應至再始等見命析死斯列兒本先呢硂打物聽太媽里全程克專' +
  '器構像女它飾τ記何手被編進公經與譯碼簽處情章動安哪確少結覺派問態識部呼分轉愛內修己次西保年特老任查種關加示允' +
  '接比孩換誰除信合爸長體置提空號直訴述認外預註初路受候ㄓ裝感幫輸璶歡機索寫妳理放斷住喜容啟產頭工車靜陳晚兩誤白' +
  '電弧今殺國停並且介效身主高親清力基帶完爾利計第美括拉穦單東義隱代失底試僅友期碞限吃馬盾又德錢拿活ぐ原邊后題報' +
  '學備移每離錄留者望思格哦裏否環詞條表支警士改朋根素及舉早幹語化希總向象則辦切資缺玩區三世場抱男監遠準約釋複夫' +
  '難範步符管倒片帝歉父反版剛笵庫推擇求日透拜徑害慮通談境嘛氣執教繼嘿檢援交幾抽串整息掉尼啦圍照立救嗯官神眔星載' +
  '服決房度阿卡筁籤二議源ㄆ卻域供哥功制送戰笑十蛋門跑羅布癸擷強呀令球夠層临影界護樂由隊怕弟水旗系塊干伙證姐段束' +
  '黑句左套醫張妓料狀奇判坐言收永近待興暗槍助喝擴口月酒師海續簡搞文眼另況傷肯萬ネ色跳久哈米顯覆怪量欄火消遺訊巴' +
  '貝延陣金嘗持連止視秨聲亞軍絕痷達集光平婚控母讀翴業王睡適充ぱ鍵線餘棒依序站側摆音便擔統演混忘買節穿律鬼艾伸飛'

const korean =
  '이다니가는요어지에그아을하고수있은기사를서로습의나야거해리내자없한게일식도할스만시용형정보라들말모인래합여우' +
  '오제안대네으신않마면되데파전당상성알세드생무었저선구러문건것했주함언된변입조까죠속겠너적개좋난름려터프같소장' +
  '중경부져트위와았때든버미환람필또확비더걸듈명치진매클추잘못렇런호각바유금두실동음예처간좀설누디분반왜포과원화' +
  '돼참출히날뭐죽잖찾른르테럼본님체군봐록워션슨공레계랑직메방줄번물엄열작찮괜결연타옵집린단살떻싶발약별코냥근감' +
  '낸녀남왔빠얘냐럴력됩될운빗최올친표석값크맞심돌넌페피임됐애재차던컴쪽절목멤관젝항태복잠많늘접행산루머통배준키' +
  '얼영므법길현새께갈릴줘류허녕둘희온받몰놈술짜브역및불긴씨먹혼응플후끝달질카턴겁능곳봤액암국막뭔회노깐패렉순교'

const hopeless = -100

/**
 * Scores how much a text in Windows-1252 looks like one of western Europe: for each character beyond ASCII how much likelier than by chance
 * it is beside its neighbours (as a logarithm), less a penalty for letters of other languages, which may be infinite.
 */
export function westernness(text: string): number {
  let sum = 0
  let previous = ' '
  const letters = new Map<string, number>()
  for (let at = 0; at < text.length && sum > hopeless; at++) {
    const character = text.charAt(at)
    if (character >= '\x80') {
      sum += weigh(character, previous, text.charAt(at + 1) || ' ')
      if (isAccented(character)) {
        const letter = character.toLowerCase()
        letters.set(letter, (letters.get(letter) ?? 0) + 1)
      }
    }
    previous = character
  }
  return sum - strangers(letters)
}

/** The letters beyond ASCII of one language each. */
const alphabets: readonly string[] = [
  'àâæçéèêëîïôœùûüÿ',
  'äöüßé',
  'áéíñóúüïçàèò',
  'áâãàçéêíóôõúü',
  'àèéìíòóùúî',
  'åäöéüà',
  'æøåéèòôó',
  'áéíóúýþæöð',
  'éëïöüèêáóíâ',
  'äöõüšž',
]

/**
 * Returns the penalty for letters outside of the best-matching alphabet of western Europe. It is infinite for a text that fits a language
 * of a neighbouring code page better (such as Czech or Turkish).
 */
function strangers(letters: ReadonlyMap<string, number>): number {
  const all = [...letters.values()].reduce((sum, times) => sum + times, 0)
  const outside = (alphabet: string) => {
    let count = 0
    for (const [letter, times] of letters) if (!alphabet.includes(letter)) count += times
    return count
  }
  const fewest = Math.min(...alphabets.map(outside))
  if (outside(shared) > 0 && Math.min(...neighbours.map(outside)) < fewest) return Number.POSITIVE_INFINITY
  return all >= 30 && fewest > all * 0.08 ? Number.POSITIVE_INFINITY : 6 * fewest
}

/** The letters of languages of Windows-1250 and Windows-1254, as the same bytes are read in Windows-1252. */
const neighbours: readonly string[] = [
  // Hungarian, Czech, Slovak, Polish, Croatian and Slovene, Romanian, Turkish.
  'áéíóöõúüû',
  'áèïéìíòóøšúùýž',
  'áäèïéíåòóôàšúýž',
  'æêñóœÿ',
  'æèðšž',
  'ãâîþ',
  'çðöüþýâî',
]
/** The letters that are the same in these code pages. */
const shared = 'áâäçéëíîóôöúüßšž'

const common = 'éèêëàâáäãåçñóôöòõúüûùíîïìæøßœ'
const capitals = 'ÉÈÊËÀÂÁÄÃÅÇÑÓÔÖÒÕÚÜÛÙÍÎÏÌÆØŒ'
/** Letters that prove nothing: those of Icelandic, and those as which Turkish and Slavic letters appear in this code page. */
const rare = 'ðþýÿšžÐÞÝŠŽŸ'

function weigh(character: string, previous: string, next: string): number {
  const before = isLetter(previous)
  const after = isLetter(next)
  const crowded = previous >= '\x80' && isAccented(previous) ? -3.5 : 0
  if (common.includes(character)) {
    // à, é and ó are words of their own.
    if (!before && !after) return ('àéèóô'.includes(character) ? 1 : -3) + crowded
    // A small letter does not stand between two capitals.
    return (/[A-Z]/.test(previous) && /[A-Z]/.test(next) ? -3 : 2) + crowded
  }
  if (capitals.includes(character)) return (/[a-zß-ÿ]/.test(previous) ? -5 : after || before ? 1.5 : -1) + crowded
  if (rare.includes(character)) return (before || after ? 0 : -3) + crowded
  switch (character) {
    case '’':
      return before ? 2.5 : -1
    case '“':
    case '„':
    case '‘':
      return !before && (after || /\d/.test(next)) ? 2.5 : -2
    case '”':
      return /[\w.,!?)’é]/.test(previous) && !after ? 2.5 : -2
    case '«':
    case '»':
    case '‹':
    case '›':
      return before !== after || /[\s\xa0]/.test(previous) !== /[\s\xa0]/.test(next) ? 2 : -2
    case '–':
    case '—':
    case '…':
      return before || /[\s\d]/.test(previous) ? 1.5 : -1
    case '¿':
    case '¡':
      return !before && after ? 2.5 : -3
    case '°':
    case '²':
    case '³':
    case '½':
      return /\d|[a-z]/.test(previous) && !after ? 1 : -2
    case '€':
    case '£':
    case '§':
    case '©':
    case '®':
    case '™':
    case '•':
    case '·':
    case '±':
    case 'µ':
    case '×':
      return before && after ? -3 : /[\s\d(\n]/.test(previous) ? 1 : 0
    case 'ª':
    case 'º':
      return /[\d.]/.test(previous) ? 1.5 : -2
    case '\xa0':
      // In French it is used before a colon, and inside quotation marks.
      return /[:;?!»%€]/.test(next) || previous === '«' ? 2 : before && after ? 0 : 0.5
    default:
      return -4
  }
}

function isLetter(character: string): boolean {
  return /[a-z]/i.test(character) || isAccented(character)
}

function isAccented(character: string): boolean {
  return (
    (character >= 'À' && character <= 'ÿ' && character !== '×' && character !== '÷') || 'ŒœŠšŽžŸ'.includes(character)
  )
}
