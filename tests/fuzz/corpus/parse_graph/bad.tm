function f(%x: f32[2, 3]) { %y: f32[3] = sum(%x) {axes = [5]} return %y }
