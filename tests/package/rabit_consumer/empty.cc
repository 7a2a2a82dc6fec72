// A program that calls XGBoost only.
int main() {}
