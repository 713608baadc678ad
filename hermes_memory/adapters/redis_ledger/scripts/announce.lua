announce(KEYS, take(), take(), take(), take(), take())
return {'ok'}
